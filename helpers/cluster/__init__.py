"""Processes that work together: Horovod ranks and TensorFlow's parameter servers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "elastic": ["ElasticFailure", "start_elastic"],
        "engines": ["RankFailure"],
        "hosts": ["HostsUnavailable", "hosts"],
        "live_line": ["report"],
        "parameter_servers": ["PSCluster", "attach_servers", "start_servers"],
        "processes": ["available", "slowed"],
        "ranks": ["DEFAULT_ENV", "Ranks", "connect"],
        "reaper": ["tail"],
        "server_processes": ["ServerFailure"],
        "sharded": ["bundle", "gradients", "lookup", "make_table", "shards"],
    },
)
