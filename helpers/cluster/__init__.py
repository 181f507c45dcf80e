"""Processes that work together: Horovod ranks and TensorFlow's parameter servers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "engines": ["RankFailure", "available"],
        "environment": ["DEFAULT_ENV"],
        "killed": ["kill_after"],
        "live_line": ["report"],
        "logs": ["tail"],
        "parameter_servers": ["PSCluster", "attach_servers", "start_servers"],
        "ranks": ["Ranks", "connect"],
        "server_processes": ["ServerFailure"],
        "sharded_tables": ["add", "bundle", "gradients", "lookup", "make_table", "sgd", "shards"],
        "straggler": ["slowed"],
    },
)
