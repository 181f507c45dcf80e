"""The model: tables, losses, the trainer on blocks and how its replicas merge, scores, files of vectors."""

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
        "checkpoints": ["read_checkpoint", "restore_checkpoint", "save_checkpoint"],
        "kernel": [
            "TILE", "add_weighted", "copy_rows", "logits_to_errors", "sigmoid", "tile_weights", "whole_tiles",
            "write_row", "write_two",
        ],
        "losses": [
            "LOSSES", "Samples", "check_sampler", "draw_samples", "frequency_biases", "full_softmax", "nce",
            "probabilities", "sampled_softmax", "sgns",
        ],
        "merging": ["due_rows", "make_replicas", "merge_changes"],
        "model": ["make_step", "make_tables", "merge", "nce_loss"],
        "pair_dataset": ["block_pairs", "pair_dataset", "thinned"],
        "resumable": [
            "Progress", "Recipe", "expected_draws", "make_training_step", "next_batch", "next_words", "part_of",
            "start_model", "sum_of_losses",
        ],
        "schedule": ["bounded_changes", "schedule"],
        "scores": ["neighbours", "scores", "twins_found"],
        "stopwatch": ["PARTS", "Stopwatch"],
        "vectors": ["load_vectors", "save_word2vec", "to_keyed_vectors"],
    },
)
