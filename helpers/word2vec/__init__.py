"""The model: tables, losses, the trainer on blocks and how its replicas merge, scores, files of vectors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "block_trainer": ["count_intervals", "train_blocks"],
        "blocks": ["Blocks", "interleave"],
        "losses": [
            "LOSSES", "Samples", "check_sampler", "draw_samples", "frequency_biases", "full_softmax", "nce",
            "probabilities", "sampled_softmax", "sgns",
        ],
        "merging": ["due_rows"],
        "model": ["make_step", "make_tables", "merge", "nce_loss"],
        "pair_dataset": ["pair_dataset"],
        "schedule": ["bounded_changes", "schedule"],
        "scores": ["neighbours", "scores", "twins_found"],
        "vectors": ["load_vectors", "save_word2vec", "to_keyed_vectors"],
    },
)
