"""How replicas stay together, and what it costs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cost_model": [
            "allreduce_seconds",
            "fit",
            "fit_line",
            "median_seconds",
            "planned",
            "predicted",
            "ring_bytes",
            "time_collectives",
        ],
        "sockets": ["Sockets"],
        "strategies": ["PAIRS", "RATE", "descend", "gradients", "mean_loss"],
        "training": ["STRATEGIES", "read", "train_planted", "train_strategy"],
    },
)
