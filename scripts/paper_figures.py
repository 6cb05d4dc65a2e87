"""The figures of scripts/bench --paper: which commands each is, what the page shows of it, and rows of the table.

What the papers have is from: Kim et al., ListDB, OSDI '22; Yang et al., NV-Tree, FAST '15. Their machines have 80 and more
threads, or other memory; so rows are ratios where that can be.
"""

import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from benchreport import build, load, model, page  # noqa: E402  after the path is known

PAIRS = 2_000_000
REMOTE_NS = 200  # more for a node of another region; about what Optane takes more across sockets


KEYS = (
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
    "nvtree-12",
)


@dataclass
class Job:
    key: str
    arguments: list
    weight: float  # of its time among the others'
    program: str = "db_bench"
    name: str = ""  # of its figure and itself


@dataclass
class Figure:
    key: str
    name: str
    title: str
    lead: str
    jobs: list
    rows: Callable = lambda results: []  # results by jobs' keys -> (what, the paper, here)
    axis: str = None
    wanted: tuple = ("speeds", "scaling")
    by_name: bool = False  # what differs between the jobs is said by their names, not by flags
    benchmarks: tuple = ()  # that the page shows; none: all
    apart: bool = False  # each job has pictures of its own

    def __post_init__(self):
        for job in self.jobs:
            job.name = f"{self.name}: {job.key}"

    def path(self, output, job):
        return output / self.key / f"{job.key}.{'json' if job.program == 'db_bench' else 'csv'}"

    def parts(self, files):
        if self.apart:
            return [page.Section(str(i), one.name, "", "", self._parts([one])) for i, one in enumerate(files)]
        return self._parts(files)

    def _parts(self, files):
        documents = [one for one in files if isinstance(one, load.Document)]
        trees = [one for one in files if isinstance(one, load.TreeTable)]
        return build.parts(documents, [], trees, self.axis, self.wanted, self.by_name, self.benchmarks)


# ---- Reading results. A job that failed has none: its rows say so.

NOTHING = "–"


def rate(document, benchmark, engine=None):
    runs = [run for run in document.content["runs"] if run["benchmark"] == benchmark and engine in (None, run["engine"])]
    return statistics.median(run["ops_per_second"] for run in runs)


def run_of(document, benchmark):
    return next(run for run in document.content["runs"] if run["benchmark"] == benchmark)


def latency(document, benchmark, kind, percentile, engine=None):
    runs = [run for run in document.content["runs"] if run["benchmark"] == benchmark and engine in (None, run["engine"])]
    return statistics.median(run["latencies_us"][kind]["percentiles"][percentile] for run in runs)


def tree_row(table, tree, node_bytes, benchmark):
    return next(row for row in table.rows if (row["tree"], row["node_bytes"], row["benchmark"]) == (tree, node_bytes, benchmark))


def times(ours, theirs):
    return f"{ours / theirs:.2f} ×" if theirs > 0 else NOTHING


def row(what, paper, here, *needed):
    """here() is called if the results that it needs are all there."""
    if any(one is None for one in needed):
        return what, paper, "not measured"
    return what, paper, here()


# ---- ListDB.


def others(db_bench):
    """The stores that this db_bench can run."""
    said = subprocess.run([db_bench, "--engines=help"], capture_output=True, text=True, check=False).stdout.splitlines()
    there = {head.split()[0]: below for head, below in zip(said[::2], said[1::2])}
    return [
        name
        for name in ("rocksdb", "leveldb", "lmdb")
        if name in there and "not built in" not in there[name] and "cannot" not in there[name]
    ]


def listdb_threads(scale, cpus):
    num = int(PAIRS * scale)
    counts = sorted({1, 2, *(2**i for i in range(2, 7) if 2**i <= cpus), cpus})
    benchmarks = "ycsb_load,ycsb_a,ycsb_b,ycsb_c,ycsb_d"
    jobs = [
        Job(
            f"{count} threads",
            [f"--benchmarks={benchmarks}", f"--num={num}", f"--reads={num // 4}", f"--threads={count}", *SMALL],
            6,
        )
        for count in counts
    ]

    def rows(results):
        first, last = results.get(jobs[0].key), results.get(jobs[-1].key)
        what = f"{{}}: {counts[-1]} threads over one"
        return [
            row(
                what.format(name),
                "more up to the machine's 80 threads",
                lambda b=b: times(rate(last, b), rate(first, b)),
                first,
                last,
            )
            for name, b in (("load", "ycsb_load"), ("YCSB A", "ycsb_a"), ("YCSB C", "ycsb_c"))
        ]

    lead = (
        "The paper: puts and gets scale to as many threads as there are cores; index-unified logging loads 99 % faster than"
        " a write-ahead log, and reads alike.\nHere: keys and values of 8 bytes, all of the engine on; there is no switch "
        "for a log of the other kind."
    )
    return Figure("listdb-10", "ListDB 10", "ListDB, figure 10: YCSB by threads", lead, jobs, rows, "threads")


SMALL = ["--key_size=8", "--value_size=8", "--seed=42"]


def listdb_regions(scale):
    num = int(PAIRS * scale / 2)
    plain = [*SMALL, f"--num={num}", "--persist_mode=emulated", "--lookup_cache_size=0", "--bloom_bits=0", "--memtable=skiplist"]
    plain.append("--l1_index_size=0")  # searches are in persistent memory alone, as in the paper
    plain += ["--threads=4", f"--writes={num // 4}", f"--reads={num // 8}"]  # a writer for each region
    benchmarks = "--benchmarks=fillrandom,waitforcompaction,compact,readrandom"
    remote = ["--regions=4", f"--emulate_remote_latency_ns={REMOTE_NS}"]
    everywhere = ["--regions=1", f"--emulate_read_latency_ns={REMOTE_NS * 3 // 4}"]
    jobs = [
        Job("braided", [benchmarks, *plain, *remote], 3),
        Job("oblivious", [benchmarks, *plain, *everywhere], 4),
        Job("all local", [benchmarks, *plain, "--regions=4"], 2),
    ]

    def remote_visits(document):
        counters = run_of(document, "readrandom")["counters"]
        return counters["remote_visits"] / max(counters["remote_visits"] + counters["local_visits"], 1)

    def rows(results):
        braided, oblivious, local = (results.get(job.key) for job in jobs)
        return [
            row(
                "gets, braided over oblivious",
                "braided has the lowest response times of reads",
                lambda: times(rate(braided, "readrandom"), rate(oblivious, "readrandom")),
                braided,
                oblivious,
            ),
            row(
                "puts, braided over oblivious",
                "faster; second to local lists only",
                lambda: times(rate(braided, "fillrandom"), rate(oblivious, "fillrandom")),
                braided,
                oblivious,
            ),
            row(
                "nodes of other regions among those that a get visits",
                "0.75 if oblivious",
                lambda: f"{remote_visits(braided):.2f}",
                braided,
            ),
            row(
                "gets, with remote latency over without",
                NOTHING,
                lambda: times(rate(braided, "readrandom"), rate(local, "readrandom")),
                braided,
                local,
            ),
        ]

    lead = (
        "The paper, on four NUMA nodes: a braided skiplist writes nearly as fast as lists of each node, and reads faster "
        "than a list that is oblivious of nodes (Obl), than lists of each node (Local, four searches), and than delegation "
        f"(Deleg, half as fast).\nHere: four regions on one node, with {REMOTE_NS} ns more for each node of another region "
        "than the one before; oblivious is one region with three quarters of that for every node, which is its expectation."
        " Four threads, one for each region, no lookup cache, "
        "no filter, no index of the last level in DRAM."
    )
    return Figure(
        "listdb-11-12",
        "ListDB 11, 12",
        "ListDB, figures 11 and 12: regions that are far",
        lead,
        jobs,
        rows,
        None,
        ("speeds",),
        True,
        ("fillrandom", "compact", "readrandom"),
    )


def listdb_load(scale, cpus):
    arguments = [
        "--benchmarks=ycsb_load,waitforcompaction",
        f"--num={int(5 * PAIRS * scale)}",
        f"--threads={cpus}",
        "--histogram",
        *SMALL,
    ]
    jobs = [Job("load", [*arguments, "--engines=braiddb,braiddb:nv_tree", "--rounds=1"], 12)]

    def rows(results):
        loaded = results.get("load")

        def slowest(engine):
            run = next(run for run in loaded.content["runs"] if run["engine"] == engine and run["benchmark"] == "ycsb_load")
            rates = [r for _, _, r in model.intervals(model.Run("", "", {}, loaded, run))]
            stalled = sum(end - begin for begin, end in model.stalls(model.intervals(model.Run("", "", {}, loaded, run))))
            return (
                f"{stalled:.2f} s; slowest tenth {min(rates) / statistics.median(rates):.2f} of the median" if rates else NOTHING
            )

        return [
            row(
                f"seconds in stalls, {name}",
                "more than 50 of 300 s without its parts, next to none of 65 s with all",
                lambda e=engine: slowest(e),
                loaded,
            )
            for name, engine in (("braided skiplist", "braiddb"), ("NV-Tree", "braiddb:nv_tree"))
        ]

    lead = (
        "The paper: 500 million puts of 8 bytes by 80 threads take 300 s with stalls of more than 50 s without its three "
        "parts (in-place merges, braiding, index-unified logging), 120 s with two, 65 s and hardly a stall with all.\nHere:"
        " all on, with both last levels; to switch parts off is a matter of the engine (docs/design/0013-ablations.md)."
    )
    return Figure(
        "listdb-13",
        "ListDB 13",
        "ListDB, figure 13: puts over time",
        lead,
        jobs,
        rows,
        None,
        ("speeds", "time", "latencies", "written", "structure"),
    )


def listdb_recovery(scale):
    num = int(PAIRS * scale)
    rates = (250_000, 500_000, 1_000_000)

    def job(key, more, weight):
        return Job(
            key, ["--benchmarks=fillrandom,crash,open,readrandom", f"--num={num}", f"--reads={num // 10}", *SMALL, *more], weight
        )

    jobs = [job(f"{r // 1000} k a second", [f"--benchmark_write_rate_limit={16 * r}"], 2 + PAIRS / r) for r in rates]
    jobs.append(job("as fast as it goes", [], 4))
    jobs.append(job("fast, a checkpoint per table", ["--checkpoint_tables=1"], 4))
    jobs.append(job("fast, a checkpoint per 16 tables", ["--checkpoint_tables=16"], 4))

    def opened(document):
        run = run_of(document, "open")
        return f"{run['seconds'] * 1000:.0f} ms, {run['counters']['replayed_entries']:,} entries replayed"

    def rows(results):
        papers = ["at once below 3 million puts a second"] * 3 + ["19 s at 7 to 9 million puts a second"] + [NOTHING] * 2
        return [
            row(f"open after a crash, puts {one.key}", paper, lambda r=results.get(one.key): opened(r), results.get(one.key))
            for one, paper in zip(jobs, papers)
        ]

    lead = (
        "The paper: recovery is immediate as long as puts come slower than merges take them, and 19 s at 7 to 9 million a "
        "second with 100 million objects; a synchronous checkpoint of a B+-tree blocks queries for 90 s.\nHere: the process"
        " ends without closing the database, and another one opens it. Synchronous checkpoint against recovery: "
        "--checkpoint_tables."
    )
    return Figure("listdb-14", "ListDB 14", "ListDB, figure 14: recovery", lead, jobs, rows, None, ("recovery", "time"), True)


def listdb_mixture(scale):
    num = int(PAIRS * scale)
    caches, percentages = (0, 4 << 20, 32 << 20), (0, 20, 50, 80, 100)
    jobs = [
        Job(
            f"cache {cache >> 20} MiB, {percent} % reads",
            [
                "--benchmarks=fillrandom,waitforcompaction,readrandomwriterandom",
                f"--num={num}",
                f"--reads={num // 4}",
                f"--readwritepercent={percent}",
                f"--lookup_cache_size={cache}",
                *SMALL,
            ],
            2,
        )
        for cache in caches
        for percent in percentages
    ]

    def rows(results):
        def of(cache, percent):
            return results.get(f"cache {cache >> 20} MiB, {percent} % reads")

        what = "{}, cache of 32 MiB over none"
        found = [
            row(
                what.format(name),
                paper,
                lambda p=p: times(rate(of(32 << 20, p), "readrandomwriterandom"), rate(of(0, p), "readrandomwriterandom")),
                of(32 << 20, p),
                of(0, p),
            )
            for name, p, paper in (
                ("reads only", 100, "with 768 MiB for 100 million keys ahead of PACTree up to 80 % reads"),
                ("half reads", 50, NOTHING),
            )
        ]
        one = of(0, 0)

        def amplification():
            parts = model.written_per_user_byte(model.Run("", "", {}, one, run_of(one, "readrandomwriterandom")))
            return f"{sum(parts.values()):.1f}"

        found.append(
            row(
                "bytes written per user byte, writes only",
                "104.4, FAST&FAIR 126.8, PACTree 91.5, as memory counts, in units of 256 bytes",
                amplification,
                one,
            )
        )
        return found

    lead = (
        "The paper: 100 million keys, 10 million queries of 40 threads, by share of reads: ListDB leads where there are "
        "writes (79, 17, 2.3 and 1.6 times BzTree, FPTree, FAST&FAIR and PACTree at writes only), trees lead at reads only "
        "(3.9 and 4.6 times) unless the lookup cache is on.\nHere: one thread, caches for none, some and all of the keys; "
        "those trees are not packaged, so not measured."
    )
    return Figure(
        "listdb-15",
        "ListDB 15",
        "ListDB, figure 15: share of reads, by size of the lookup cache",
        lead,
        jobs,
        rows,
        "readwritepercent",
        ("scaling",),
        benchmarks=("readrandomwriterandom",),
    )


def listdb_stores(scale, stores):
    num = int(PAIRS * scale / 4)
    common = [
        "--benchmarks=fillrandom,waitforcompaction,readrandom",
        f"--num={num}",
        f"--reads={num // 2}",
        "--key_size=8",
        "--value_size=1000",
        "--seed=42",
        "--histogram",
    ]
    engines = ",".join(["braiddb", "braiddb:nv_tree", *stores])
    jobs = [Job("stores", [*common, f"--engines={engines}", "--rounds=1"], 15)]

    def rows(results):
        one = results.get("stores")
        found = []
        for store, writes, reads in (
            ("rocksdb", "2 × Pmem-RocksDB", "a little below Pmem-RocksDB without a cache"),
            ("lmdb", NOTHING, NOTHING),
            ("leveldb", NOTHING, NOTHING),
        ):
            needed = one if store in stores else None
            found.append(
                row(
                    f"writes, over {store}",
                    writes,
                    lambda s=store: times(rate(one, "fillrandom", "braiddb"), rate(one, "fillrandom", s)),
                    needed,
                )
            )
            found.append(
                row(
                    f"reads, over {store}",
                    reads,
                    lambda s=store: times(rate(one, "readrandom", "braiddb"), rate(one, "readrandom", s)),
                    needed,
                )
            )
        return found

    lead = (
        "The paper, one thread, 100 million keys of 8 bytes and values of 1 KB: ListDB writes twice as fast as "
        "Pmem-RocksDB, faster than SLM-DB and NoveLSM, and reads a little slower without its lookup cache.\nHere: what is "
        "installed of RocksDB, LevelDB and LMDB, none of them made for persistent memory."
    )
    return Figure(
        "listdb-16",
        "ListDB 16",
        "ListDB, figure 16: beside other stores, values of 1 KB",
        lead,
        jobs,
        rows,
        None,
        ("speeds", "time", "latencies", "written"),
        benchmarks=("fillrandom", "readrandom"),
    )


def listdb_facebook(scale, cpus, stores):
    num = int(PAIRS * scale / 2)
    seconds = max(2, int(10 * min(scale, 3)))
    common = [
        "--benchmarks=filluniquerandom,waitforcompaction,mixgraph",
        "--preset=prefix_dist",
        f"--num={num}",
        "--value_size=100",
        f"--threads={cpus}",
        f"--duration={seconds}",
        "--histogram",
        "--seed=42",
        "--rounds=1",
    ]
    engines = "--engines=braiddb,rocksdb" if "rocksdb" in stores else "--engines=braiddb,braiddb:nv_tree"
    sine = ["--sine_mix_rate", "--sine_mix_rate_noise=0.5", "--sine_mix_rate_interval_milliseconds=500", "--sine_b=1.2"]
    jobs = [
        Job("idle", [*common, engines, *sine, "--sine_a=20000", "--sine_d=60000"], 2 * seconds),
        Job("busy", [*common, engines, *sine, "--sine_a=400000", "--sine_d=1200000"], 2 * seconds),
    ]

    def followed(document, engine):
        run = next(run for run in document.content["runs"] if run["engine"] == engine and run["benchmark"] == "mixgraph")
        steps = run["demanded_rate"] + [[run["seconds"], 0]]
        asked = sum(r * (until - at) for (at, r), (until, _) in zip(steps, steps[1:]))
        return f"{100 * run['operations'] / asked:.0f} % of what was asked for"

    def rows(results):
        found = []
        for key in ("idle", "busy"):
            one = results.get(key)
            found.append(row(f"{key}: BraidDB", "follows the sine", lambda r=one: followed(r, "braiddb"), one))
            if "rocksdb" in stores:
                found.append(
                    row(
                        f"{key}: RocksDB",
                        "Pmem-RocksDB: stuck at 200 k puts and 400 to 600 k gets a second",
                        lambda r=one: followed(r, "rocksdb"),
                        one,
                    )
                )
        return found

    lead = (
        "The paper: prefix_dist, put:get 3:7, keys of 48 bytes, values of 16 B to 10 KB, 80 threads, rates by a sine with "
        "noise of 0.5: ListDB follows, with 5 million puts and 13 million gets a second, and ends after 380 s; Pmem-RocksDB"
        " is stuck at 200 k and 400 to 600 k, and ends after 7400 s.\nHere: the same workload, two rates that suit two "
        "cores."
    )
    return Figure(
        "listdb-17",
        "ListDB 17",
        "ListDB, figure 17: Facebook's workload with a sine",
        lead,
        jobs,
        rows,
        None,
        ("speeds", "time", "latencies"),
        benchmarks=("mixgraph",),
        apart=True,
    )


# ---- NV-Tree.


def trees(scale):
    num = int(300_000 * scale)
    arguments = [f"--num={max(num, 1000)}", "--flush=clflush"]
    jobs = [Job("operations", [*arguments, "--benchmarks=insert,update,search,delete"], 60, "index_bench")]

    def rows(results):
        table = results.get("operations")
        found = []
        for benchmark, paper in (
            ("insert", "up to 8 × and 16 ×"),
            ("update", "up to 5.6 × and 8.5 ×"),
            ("search", "comparable"),
            ("delete", "better than LCB+, not as good as CDDS"),
        ):

            def here(b=benchmark):
                ours = tree_row(table, "nvtree", 4096, b)["ops_per_second"]
                return " and ".join(times(ours, tree_row(table, other, 4096, b)["ops_per_second"]) for other in ("lcb", "cdds"))

            found.append(row(f"{benchmark}, nodes of 4 KiB: over LCB+Tree and CDDS-Tree", paper, here, table))

        def fewer(other):
            shares = [
                1 - tree_row(table, "nvtree", size, "insert")["lines"] / tree_row(table, other, size, "insert")["lines"]
                for size in (512, 1024, 2048, 4096)
            ]
            return f"{100 * min(shares):.0f} to {100 * max(shares):.0f} %"

        found.append(row("fewer flushed lines than LCB+Tree, 512 bytes to 4 KiB", "80 to 97 %", lambda: fewer("lcb"), table))
        found.append(row("fewer flushed lines than CDDS-Tree", "76 to 96 %", lambda: fewer("cdds"), table))
        return found

    lead = (
        "The paper, figures 5, 7 and 10: a million insertions, updates, searches and deletions of 8-byte pairs, nodes of "
        "512 bytes to 4 KiB, clflush.\nHere: the same with fewer pairs; rebuilds are in the CSV file. Figure 9, misses of "
        "the CPU's caches, needs its counters, which virtual machines rarely show."
    )
    return Figure(
        "nvtree-5-7", "NV-Tree 5, 7", "NV-Tree, figures 5 and 7: operations by size of nodes", lead, jobs, rows, None, ("trees",)
    )


def tree_sizes(scale):
    sizes = [max(int(n * scale), 500) for n in (100_000, 300_000, 1_000_000)]
    jobs = [
        Job(
            f"{n} pairs",
            [f"--num={n}", "--node_bytes=4096", "--benchmarks=insert", "--flush=clflush", "--count=0"],
            n / 12000 / max(scale, 0.01) / 5,
            "index_bench",
        )
        for n in sorted(set(sizes))
    ]

    def rows(results):
        def here(table):
            ours = tree_row(table, "nvtree", 4096, "insert")["ops_per_second"]
            return " and ".join(
                times(ours, tree_row(table, other, 4096, "insert")["ops_per_second"]) for other in ("lcb", "cdds")
            )

        papers = ["1 million: 15.2 × and 8 ×", "10 million: 6.3 × and 9.7 ×", "100 million: 5.3 × and 8.2 ×"]
        return [
            row(
                f"{job.key} inserted: over LCB+Tree and CDDS-Tree",
                paper,
                lambda r=results.get(job.key): here(r),
                results.get(job.key),
            )
            for job, paper in zip(jobs, papers)
        ]

    return Figure(
        "nvtree-6",
        "NV-Tree 6",
        "NV-Tree, figure 6: insertions by number of pairs",
        "The paper: 1, 10 and 100 million pairs, nodes of 4 KiB.",
        jobs,
        rows,
        None,
        ("trees",),
    )


def tree_mixtures(scale):
    num = max(int(200_000 * scale), 1000)
    jobs = [
        Job(
            f"{percent} % insertions",
            [
                f"--num={num}",
                "--node_bytes=4096",
                "--benchmarks=insert,mixed",
                f"--insert_percent={percent}",
                "--flush=clflush",
                "--count=0",
            ],
            8,
            "index_bench",
        )
        for percent in (90, 50, 10)
    ]

    def rows(results):
        def here(table):
            ours = tree_row(table, "nvtree", 4096, "mixed")["ops_per_second"]
            return " and ".join(times(ours, tree_row(table, other, 4096, "mixed")["ops_per_second"]) for other in ("lcb", "cdds"))

        papers = ["6.6 × and 10 ×", "less", "still better than both"]
        return [
            row(f"{job.key}: over LCB+Tree and CDDS-Tree", paper, lambda r=results.get(job.key): here(r), results.get(job.key))
            for job, paper in zip(jobs, papers)
        ]

    return Figure(
        "nvtree-8",
        "NV-Tree 8",
        "NV-Tree, figure 8: insertions and searches mixed",
        "The paper: a million operations on a tree of a million pairs.",
        jobs,
        rows,
        None,
        ("trees",),
    )


def tree_store(scale, stores):
    num = int(PAIRS * scale / 4)
    engines = ",".join(["braiddb:nv_tree", "braiddb", *stores])
    jobs = [
        Job(
            "ycsb",
            [
                f"--engines={engines}",
                "--rounds=1",
                "--benchmarks=ycsb_load,ycsb_d,crash,open,ycsb_a",
                f"--num={num}",
                f"--reads={num}",
                "--value_size=100",
                "--seed=42",
            ],
            12,
        )
    ]

    def rows(results):
        one = results.get("ycsb")
        found = [
            row(
                f"{name}, over {store}",
                f"{paper} Redis",
                lambda b=b, s=store: times(rate(one, b, "braiddb:nv_tree"), rate(one, b, s)),
                one if store in stores else None,
            )
            for name, b, paper in (
                ("StatusUpdate (YCSB D)", "ycsb_d", "up to 3.2 ×"),
                ("SessionStore (YCSB A)", "ycsb_a", "up to 4.8 ×"),
            )
            for store in ("rocksdb", "lmdb")
        ]
        found.append(
            row(
                "open after a crash, inner nodes made of leaves",
                "bounded by the rebuild (figure 10b)",
                lambda: f"{run_of(one, 'open')['seconds'] * 1000:.0f} ms",
                one,
            )
        )
        return found

    lead = (
        "The paper: NV-Store, a store on NV-Tree, beside Redis: StatusUpdate, 95 % reads of what is new, and SessionStore, "
        "half updates by Zipf's law.\nHere: YCSB D and A, with an NV-Tree as the last level, beside what is installed."
    )
    return Figure(
        "nvtree-11",
        "NV-Tree 10b, 11",
        "NV-Tree, figures 10b and 11: as a store",
        lead,
        jobs,
        rows,
        None,
        ("speeds", "recovery", "time"),
    )


def tree_latency(scale):
    num = max(int(100_000 * scale), 1000)
    jobs = [
        Job(
            f"{ns} ns a line",
            [
                f"--num={num}",
                "--node_bytes=4096",
                "--benchmarks=insert",
                "--flush=clflush",
                "--count=0",
                f"--write_latency_ns={ns}",
            ],
            6,
            "index_bench",
        )
        for ns in (0, 50, 180)
    ]

    def rows(results):
        base = results.get(jobs[0].key)

        def slower(table):
            shares = [
                tree_row(base, tree, 4096, "insert")["ops_per_second"] / tree_row(table, tree, 4096, "insert")["ops_per_second"]
                - 1
                for tree in ("nvtree", "lcb", "cdds")
            ]
            return ", ".join(f"{100 * share:.0f} %" for share in shares)

        papers = {"50 ns a line": "5, 51, 87 % (STT-RAM)", "180 ns a line": "206, 241, 281 % (PCM)"}
        return [
            row(
                f"slower than without latency, {key}: NV-Tree, LCB+, CDDS",
                paper,
                lambda r=results.get(key): slower(r),
                base,
                results.get(key),
            )
            for key, paper in papers.items()
        ]

    return Figure(
        "nvtree-12",
        "NV-Tree 12",
        "NV-Tree, figure 12: slower memory",
        "The paper: a million insertions into nodes of 4 KiB, with latencies of STT-RAM and PCM for each line.",
        jobs,
        rows,
        None,
        ("trees",),
    )


def figures(scale, cpus, db_bench):
    """All of them. `scale`: of counts; `cpus`: how many threads at most; `db_bench`: the program, for the stores it has."""
    stores = others(db_bench)
    return [
        listdb_threads(scale, cpus),
        listdb_regions(scale),
        listdb_load(scale, cpus),
        listdb_recovery(scale),
        listdb_mixture(scale),
        listdb_stores(scale, stores),
        listdb_facebook(scale, cpus, stores),
        trees(scale),
        tree_sizes(scale),
        tree_mixtures(scale),
        tree_store(scale, stores),
        tree_latency(scale),
    ]
