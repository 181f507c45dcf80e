"""How replicas stay together: the changes of ranks become one, and what an exchange costs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cost_model": [
            "allreduce_seconds", "bytes_sent", "fit_line", "latency_and_bandwidth", "median_seconds", "ring_bytes",
            "time_collectives",
        ],
        "merging": ["due_rows", "make_replicas", "merge_changes"],
    },
)
