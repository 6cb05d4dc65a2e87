#!/usr/bin/env python3
"""usage: compare.py [--num N] [--rounds N] [--directory PATH]

Measures braiddb beside py-lmdb, plyvel and rocksdict where they are installed: the same keys of 16 bytes and values of 100 in the same
order, in one process, rounds in turn. Prints the median rate of each and braiddb's ratio to the best of the others.
"""

import argparse
import random
import shutil
import statistics
import tempfile
import time


class Store:
    """What most packages have in common: self.db has put, get and close."""

    def put(self, pairs):
        put = self.db.put
        for key, value in pairs:
            put(key, value)

    def get(self, keys):
        get = self.db.get
        for key in keys:
            get(key)

    def close(self):
        self.db.close()


class BraidDB(Store):
    def __init__(self, path):
        import braiddb
        self.db = braiddb.open(path, create=True)

    def multi_get(self, groups):
        for group in groups:
            self.db.multi_get(group)

    def iterate(self):
        return sum(1 for _ in self.db.items())


class Lmdb(Store):
    def __init__(self, path):
        import lmdb
        self.db = lmdb.open(path, map_size=8 << 30, writemap=True, sync=False, map_async=True)

    def put(self, pairs):
        for key, value in pairs:
            with self.db.begin(write=True) as transaction:
                transaction.put(key, value)

    def get(self, keys):
        with self.db.begin() as transaction:
            get = transaction.get
            for key in keys:
                get(key)

    def multi_get(self, groups):
        with self.db.begin() as transaction, transaction.cursor() as cursor:
            for group in groups:
                cursor.getmulti(group)

    def iterate(self):
        with self.db.begin() as transaction:
            return sum(1 for _ in transaction.cursor())


class Plyvel(Store):
    def __init__(self, path):
        import plyvel
        self.db = plyvel.DB(path, create_if_missing=True)

    def multi_get(self, groups):
        for group in groups:
            for key in group:
                self.db.get(key)

    def iterate(self):
        return sum(1 for _ in self.db)


class Rocksdict(Store):
    def __init__(self, path):
        import rocksdict
        self.db = rocksdict.Rdict(path, rocksdict.Options(raw_mode=True))

    def multi_get(self, groups):
        for group in groups:
            self.db.get(group)

    def iterate(self):
        return sum(1 for _ in self.db.items())


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--num", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", default="/dev/shm")
    arguments = parser.parse_args()
    generator = random.Random(1)
    keys = [generator.randbytes(16) for _ in range(arguments.num)]
    pairs = [(key, key * 6 + key[:4]) for key in keys]
    generator.shuffle(keys)
    groups = [keys[i:i + 100] for i in range(0, len(keys), 100)]
    stores = {}
    for store in (BraidDB, Lmdb, Plyvel, Rocksdict):
        with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
            try:
                store(directory + "/db").close()
                stores[store] = {}
            except ImportError:
                print(f"{store.__name__}: not installed")
    for _ in range(arguments.rounds):
        for store, rates in stores.items():
            directory = tempfile.mkdtemp(dir=arguments.directory)
            try:
                db = store(directory + "/db")
                for name, work in (("put", lambda: db.put(pairs)), ("get", lambda: db.get(keys)),
                                   ("multi_get", lambda: db.multi_get(groups)), ("iterate", db.iterate)):
                    begin = time.perf_counter()
                    found = work()
                    rates.setdefault(name, []).append(arguments.num / (time.perf_counter() - begin))
                    if name == "iterate" and found != arguments.num:
                        raise SystemExit(f"{store.__name__} has {found} of {arguments.num} keys")
                db.close()
            finally:
                shutil.rmtree(directory)
    print(f"{'operations/s':12}" + "".join(f"{store.__name__:>14}" for store in stores) + "   braiddb / best of the others")
    for name in ("put", "get", "multi_get", "iterate"):
        rates = {store: statistics.median(values[name]) for store, values in stores.items()}
        others = [rate for store, rate in rates.items() if store is not BraidDB]
        print(f"{name:12}" + "".join(f"{rate:14,.0f}" for rate in rates.values()) +
              (f"   {rates[BraidDB] / max(others):.2f}" if others else ""))


if __name__ == "__main__":
    main()
