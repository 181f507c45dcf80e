"""Ways of exchanging in a training step, and what they cost."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cost_model": [
            "allreduce_seconds", "bytes_sent", "distinct", "fit_line", "latency_and_bandwidth",
            "median_seconds", "planned", "predicted", "ring_bytes", "row_bytes", "time_collectives",
        ],
        "strategies": [
            "BATCH", "DIM", "LOCAL_STEPS", "PAIRS", "RATE", "SAMPLED", "STRATEGIES", "Strategy", "add_rows",
            "apply_gradients", "batch_gradients", "batch_loss", "batches", "pairs_of", "side_by_side", "start_tables",
        ],
    },
)
