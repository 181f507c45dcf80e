"""The model: tables, loss, the trainer on blocks, its schedule on ranks, scores, files of vectors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["block_trainer", "kernel"],  # as wholes for lesson 13, which shows parts of them
    submod_attrs={
        "array_replicas": ["make_array_exchange"],
        "block_trainer": [
            "block_loss", "block_tables", "count_intervals", "highest_rates", "make_kernel_train", "pair_weights",
            "train_blocks",
        ],
        "blocks": ["Blocks", "cut_blocks", "interleave", "next_blocks", "noise_table", "pad_text"],
        "kernel": [
            "TILE", "add_weighted", "copy_rows", "logits_to_errors", "sigmoid", "tile_weights", "whole_tiles",
            "write_row", "write_two",
        ],
        "model": ["frequency_biases", "make_step", "make_tables", "merge", "nce_loss", "probabilities"],
        "pair_dataset": ["block_pairs", "pair_dataset", "thinned"],
        "schedule": ["bounded_changes", "schedule"],
        "scores": ["scores", "twins_found"],
        "vectors": ["load_vectors", "to_keyed_vectors"],
    },
)
