"""Processes that work together: Horovod ranks and TensorFlow's parameter servers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "engines": ["RankFailure", "available"],
        "live_line": ["report"],
        "parameter_servers": ["PSCluster", "attach_servers", "start_servers"],
        "ranks": ["Ranks", "connect"],
        "server_processes": ["ServerFailure"],
        "sharded_tables": ["add", "bundle", "gradients", "lookup", "make_table", "sgd", "shards"],
    },
)
