"""How replicas stay together, and what it costs."""

import lazy_loader

COST = "allreduce_seconds", "distinct", "fit", "fit_line", "median_seconds", "planned", "predicted", "ring_bytes"
STRATEGY = "BATCH", "DIM", "LOCAL_STEPS", "PAIRS", "RATE", "SAMPLED", "STRATEGIES", "Strategy", "pairs_of"
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cost_model": [*COST, "row_bytes", "time_collectives"],
        "sockets": ["Sockets"],
        "strategies": STRATEGY,
        "training": ["batches", "bytes_sent", "start_tables"],
    },
)
