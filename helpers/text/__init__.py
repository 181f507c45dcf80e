"""From words to pairs; knows nothing of TensorFlow."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "corpus": ["load_corpus", "planted_topic", "planted_twin"],
        "skipgram": [
            "check_batch_arguments", "check_epoch_arguments", "check_positive", "draw_reach", "generate_batch",
            "pair_batches", "pairs_within", "shard", "skipgram_pairs", "subsample",
        ],
        "vocab": ["Vocab"],
    },
)
