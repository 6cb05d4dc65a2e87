"""The figures of scripts/bench --paper: which commands each is, what the page shows of it, and rows of the table.

Their machines have 80 and more threads, or other memory; so rows are ratios where that can be.
"""

import subprocess

from paper_listdb import (
    listdb_copying,
    listdb_facebook,
    listdb_load,
    listdb_logging,
    listdb_mixture,
    listdb_recovery,
    listdb_regions,
    listdb_stores,
    listdb_threads,
)
from paper_nvtree import tree_latency, tree_mixtures, tree_redis, tree_sizes, tree_store, trees

KEYS = (
    "listdb-9",
    "listdb-9-merges",
    "listdb-10",
    "listdb-11-12",
    "listdb-13",
    "listdb-14",
    "listdb-15",
    "listdb-16",
    "listdb-17",
    "nvtree-5-7",
    "nvtree-6",
    "nvtree-8",
    "nvtree-11",
    "nvtree-11-redis",
    "nvtree-12",
)


def others(db_bench, names=("rocksdb", "leveldb", "lmdb")):
    """The stores that this db_bench can run, of these."""
    said = subprocess.run([db_bench, "--engines=help"], capture_output=True, text=True, check=False).stdout.splitlines()
    there = {head.split()[0]: below for head, below in zip(said[::2], said[1::2])}
    return [
        name
        for name in names
        if name in there and "not built in" not in there[name] and "cannot" not in there[name]
    ]


def figures(scale, cpus, db_bench):
    """All of them. `scale`: of counts; `cpus`: how many threads at most; `db_bench`: the program, for the stores it has."""
    stores = others(db_bench)
    return [
        listdb_logging(scale, cpus),
        listdb_copying(scale),
        listdb_threads(scale, cpus),
        listdb_regions(scale),
        listdb_load(scale, cpus),
        listdb_recovery(scale, others(db_bench, ("dram-checkpoint",))),
        listdb_mixture(scale),
        listdb_stores(scale, stores),
        listdb_facebook(scale, cpus, stores),
        trees(scale),
        tree_sizes(scale),
        tree_mixtures(scale),
        tree_store(scale, stores),
        tree_redis(scale, cpus, ("redis", "redis:resp_server") if others(db_bench, ("redis",)) else ()),
        tree_latency(scale),
    ]
