"""The model: tables, losses, trainers, evaluation, files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "blocks": ["Blocks", "interleave"],
        "dataset": ["pair_dataset"],
        "evaluation": ["neighbours", "scores", "twins_found"],
        "export": ["load_vectors", "save_word2vec", "to_keyed_vectors"],
        "model": ["make_step", "make_tables", "merge", "nce_loss"],
        "replicas": ["due_rows"],
        "samplers": ["check_sampler", "draw_samples", "frequency_biases", "probabilities"],
        "shared_negatives": ["count_intervals", "train_blocks"],
    },
)
