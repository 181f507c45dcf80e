"""Ways of exchanging in a training step, and what they cost."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cost_model": [
            "allreduce_seconds", "bytes_sent", "distinct", "fit_line", "forget_peak", "latency_and_bandwidth",
            "median_seconds", "peak_memory", "planned", "predicted", "ring_bytes", "row_bytes", "time_collectives",
        ],
        "ring": ["Sockets", "bare_ring", "ring_allreduce"],
        "server_steps": [
            "local_steps", "local_word2vec", "negative_sampling", "new_tables", "noise", "own_pairs", "plain_step",
        ],
        "strategies": [
            "BATCH", "DIM", "LOCAL_STEPS", "PAIRS", "RATE", "SAMPLED", "STRATEGIES", "Strategy", "add_rows",
            "apply_gradients", "batch_gradients", "batch_loss", "batches", "pairs_of", "side_by_side", "start_tables",
        ],
        "three_ways": [
            "Hogwild", "OnServer", "all_or_none", "loss_and_gradients", "make_steps", "pull_and_push", "rank_step",
            "run_threads",
        ],
    },
)
