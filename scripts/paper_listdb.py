"""Figures 9 to 17 of Kim et al., ListDB, OSDI '22: each function gives one."""

import statistics

from paper_figure import COUNTING, NOTHING, PAIRS, SMALL, Figure, Job, rate, row, run_of, runs_of, spread, times, written

from benchreport import model  # paper_figure knows the path

COPYING = "--index_unified_logging=false"  # a write-ahead log, and flushes that copy
RUNS = "braiddb:sorted_runs"  # the engine with zipper compaction switched off
REMOTE_NS = 200  # more for a node of another region: of the order of an access across sockets


def listdb_logging(scale, cpus):
    arguments = [
        "--benchmarks=fillrandom,flush",
        f"--num={int(2 * PAIRS * scale)}",
        f"--threads={cpus}",
        "--disable_auto_compactions",
        "--histogram",
        *SMALL,
    ]
    jobs = [
        Job("index-unified", arguments, 3),
        Job("write-ahead", [*arguments, COPYING], 6),
        Job("index-unified, counted", [*arguments, COUNTING], 3),
        Job("write-ahead, counted", [*arguments, COPYING, COUNTING], 6),
    ]

    def counted(document, name):
        return run_of(document, "fillrandom")["counters"][name]

    def background(document):
        written = run_of(document, "fillrandom")["written_bytes"]
        return 64 * counted(document, "background_flushed_lines") / written

    def rows(results):
        unified, copying, unified_counted, copying_counted = (results.get(job.key) for job in jobs)
        both = (unified, copying)
        return [
            row(
                "puts without merges, index-unified over write-ahead",
                "no stalls; with a write-ahead log flushes are slower than puts, which wait for them",
                lambda: times(rate(unified, "fillrandom"), rate(copying, "fillrandom")),
                *both,
            ),
            row(
                "puts that waited for flushes, index-unified and write-ahead",
                NOTHING,
                lambda: f"{counted(unified, 'write_delays'):,} and {counted(copying, 'write_delays'):,}",
                *both,
            ),
            row(
                "bytes that flushes wrote per byte of the user's, index-unified and write-ahead",
                "flushes neither copy nor flush lines",
                lambda: f"{background(unified):.2f} and {background(copying):.2f}",
                *both,
            ),
            row(
                "bytes written per byte of the user's, log and flushes, index-unified and write-ahead",
                NOTHING,
                lambda: " and ".join(written(one, ("fillrandom", "flush")) for one in (unified_counted, copying_counted)),
                unified_counted,
                copying_counted,
            ),
        ]

    lead = (
        "The paper: without merges, puts into a write-ahead log wait for flushes as soon as memtables are full, since "
        "copying is slower than writing; with index-unified logging a flush takes less time than the puts.\nHere: the same "
        f"with {COPYING}; a memtable's copies are durable before its log is released. Index-unified flushes write lines at "
        "checkpoints, one of four tables."
    )
    return Figure(
        "listdb-9",
        "ListDB 9",
        "ListDB, figure 9: puts and flushes, by the kind of log",
        lead,
        jobs,
        rows,
        None,
        ("speeds", "time", "latencies", "written"),
        True,
        ("fillrandom",),
    )


def listdb_copying(scale):
    num = int(PAIRS * scale)
    benchmarks = "--benchmarks=fillrandom,waitforcompaction,compact,readrandom,readseq"
    arguments = [benchmarks, f"--num={num}", f"--reads={num // 4}", "--threads=1", "--histogram", *SMALL]
    engines = ("braiddb", "braiddb:nv_tree", RUNS)
    chosen = f"--engines={','.join(engines)}"
    load = ("fillrandom", "waitforcompaction")
    jobs = [
        Job("log", [*arguments, chosen], 12),
        Job("counted", [f"--benchmarks={','.join(load)}", f"--num={num}", chosen, COUNTING, *SMALL], 6),
    ]

    def in_background(document, engine):
        run, merged = (run_of(document, benchmark, engine) for benchmark in load)
        lines = sum(one["counters"].get("background_flushed_lines", 0) for one in (run, merged))
        return 64 * lines / run["written_bytes"]

    def rows(results):
        one = results.get("log")
        found = [
            row(
                f"{name}, copying merges over zipper compaction",
                paper,
                lambda b=b: times(rate(one, b, RUNS), rate(one, b, "braiddb")),
                one,
            )
            for name, b, paper in (
                ("puts", "fillrandom", "stalls after 40 s, when flushed tables wait for merges"),
                ("gets", "readrandom", "copies in the order of keys are sometimes ahead"),
                ("scans", "readseq", NOTHING),
            )
        ]
        found.append(
            row("scans, copying merges over NV-Tree", NOTHING, lambda: times(rate(one, "readseq", RUNS),
                rate(one, "readseq", "braiddb:nv_tree")), one)
        )
        found.append(
            row(
                "bytes that flushes and merges write per user byte: copying, zipper",
                "more with copies",
                lambda: f"{in_background(one, RUNS):.1f}, {in_background(one, 'braiddb'):.1f}",
                one,
            )
        )
        counted = results.get("counted")
        found += [
            row(
                f"bytes written per user byte, log, flushes and merges: {name}",
                NOTHING,
                lambda e=e: written(counted, load, e),
                counted,
            )
            for name, e in zip(("zipper", "NV-Tree", "copying"), engines)
        ]
        return found

    lead = (
        "The paper, with zipper compaction switched off: index-unified logging flushes without copies, so puts do not wait for "
        "flushes, but flushed tables wait for merges that copy.\nHere: merges copy into "
        "sorted runs, or link in place, or go into an NV-Tree. Loads, then everything is merged, then reads."
    )
    return Figure(
        "listdb-9-merges",
        "ListDB 9",
        "ListDB, figure 9: merges that copy",
        lead,
        jobs,
        rows,
        None,
        ("speeds", "time", "latencies", "written", "structure"),
    )


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
    of_all = jobs[-1]
    jobs.append(Job("write-ahead log", [*of_all.arguments, COPYING], 8))

    def rows(results):
        first, last = results.get(jobs[0].key), results.get(of_all.key)
        copying = results.get(jobs[-1].key)
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
        ] + [
            row(
                f"{name}: index-unified over write-ahead, {counts[-1]} threads",
                paper,
                lambda b=b: times(rate(last, b), rate(copying, b)),
                last,
                copying,
            )
            for name, b, paper in (
                ("load", "ycsb_load", "up to 1.99 ×"),
                ("YCSB A", "ycsb_a", "faster"),
                ("YCSB C", "ycsb_c", "alike"),
            )
        ]

    lead = (
        "The paper: puts and gets scale to as many threads as there are cores; index-unified logging loads 99 % faster than"
        " a write-ahead log, and reads alike.\nHere: keys and values of 8 bytes, all of the engine on; and, with all "
        f"threads, a write-ahead log and flushes that copy ({COPYING})."
    )
    return Figure("listdb-10", "ListDB 10", "ListDB, figure 10: YCSB by threads", lead, jobs, rows, "threads")


def listdb_regions(scale):
    num = int(PAIRS * scale / 2)
    plain = [*SMALL, f"--num={num}", "--persist_mode=emulated", "--lookup_cache_size=0", "--bloom_bits=0", "--memtable=skiplist"]
    plain.append("--l1_index_size=0")  # searches are in persistent memory alone, as in the paper
    plain += ["--threads=4", f"--writes={num // 4}", f"--reads={num // 8}"]  # a writer for each region
    benchmarks = "--benchmarks=fillrandom,waitforcompaction,compact,readrandom"
    remote = ["--regions=4", f"--emulate_remote_latency_ns={REMOTE_NS}"]
    jobs = [
        Job("braided", [benchmarks, *plain, *remote], 3),
        Job("oblivious", [benchmarks, *plain, *remote, "--list_kind=oblivious"], 4),
        Job("all local", [benchmarks, *plain, "--regions=4"], 2),
    ]

    def remote_visits(document):
        counters = run_of(document, "readrandom")["counters"]
        return counters["remote_visits"] / max(counters["remote_visits"] + counters["local_visits"], 1)

    def remote_per_get(document):
        run = run_of(document, "readrandom")
        return run["counters"]["remote_visits"] / run["operations"]

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
                NOTHING,
                lambda: f"{remote_visits(braided):.2f}; {remote_visits(oblivious):.2f} if oblivious",
                braided,
                oblivious,
            ),
            row(
                "such nodes per get",
                NOTHING,
                lambda: f"{remote_per_get(braided):.1f}; {remote_per_get(oblivious):.1f} if oblivious",
                braided,
                oblivious,
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
        "than the one before; oblivious lists link nodes of all regions on all layers (--list_kind). Four threads, one for each region, no lookup cache, "
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
    jobs = [
        Job("load", [*arguments, f"--engines=braiddb,braiddb:nv_tree,{RUNS}"], 18),
        Job("load, write-ahead log", [*arguments, "--engines=braiddb,braiddb:nv_tree", COPYING], 20),
    ]

    def rows(results):
        def slowest(loaded, engine):
            run = run_of(loaded, "ycsb_load", engine)
            rates = [r for _, _, r in model.intervals(model.Run("", "", {}, loaded, run))]
            stalled = sum(end - begin for begin, end in model.stalls(model.intervals(model.Run("", "", {}, loaded, run))))
            return (
                f"{stalled:.2f} s; slowest tenth {min(rates) / statistics.median(rates):.2f} of the median" if rates else NOTHING
            )

        all_parts = "more than 50 of 300 s without its parts, next to none of 65 s with all"
        in_place = (("braided skiplist", "braiddb"), ("NV-Tree", "braiddb:nv_tree"))
        copying = (("merges that copy", RUNS),)
        stalls = [
            (jobs[0], in_place, all_parts),
            (jobs[0], copying, "some, with braiding and index-unified logging only (13g)"),
            (jobs[1], in_place, "more"),
        ]
        return [
            row(
                f"seconds in stalls, {name}{job.key.removeprefix('load')}",
                paper,
                lambda r=results.get(job.key), e=engine: slowest(r, e),
                results.get(job.key),
            )
            for job, engines, paper in stalls
            for name, engine in engines
        ] + [
            row(
                "puts, index-unified over write-ahead log",
                "120 s with two parts, 65 s with all three",
                lambda: times(rate(results["load"], "ycsb_load", "braiddb"), rate(results[jobs[1].key], "ycsb_load", "braiddb")),
                *(results.get(job.key) for job in jobs),
            )
        ]

    lead = (
        "The paper: 500 million puts of 8 bytes by 80 threads take 300 s with stalls of more than 50 s without its three "
        "parts (in-place merges, braiding, index-unified logging), 120 s with two, 65 s and hardly a stall with all.\nHere:"
        " all on, with each of the last levels that merge in place; merges that copy, into sorted runs, as without zipper compaction; "
        f"and without index-unified logging ({COPYING})."
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
        True,
    )


def listdb_recovery(scale, stores):
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

    ours = list(jobs)
    # Written out by whoever makes the last put before it is due, while all others wait.
    intervals = {f"synchronous checkpoint every {num // parts:,} puts": num // parts for parts in (2, 4, 16)}
    intervals["log only"] = 0
    if stores:
        jobs.extend(job(key, [f"--engine=dram-checkpoint:{interval}"], 4) for key, interval in intervals.items())

    def opened(document):
        run = run_of(document, "open")
        loaded = run["counters"].get("loaded_entries", 0)
        every = spread(one["seconds"] * 1000 for one in runs_of(document, "open"))
        return f"{run['seconds'] * 1000:.0f} ms{every}, {run['counters']['replayed_entries']:,} entries replayed" + (
            f", {loaded:,} loaded" if loaded else ""
        )

    def waited(document):
        counters = run_of(document, "fillrandom")["counters"]
        return f"{counters['checkpoint_us_most'] / 1000:.0f} ms, {counters['checkpoint_us'] / 1e6:.2f} s of all"

    def rows(results):
        papers = ["at once below 3 million puts a second"] * 3 + ["19 s at 7 to 9 million puts a second"] + [NOTHING] * 2
        found = [
            row(f"open after a crash, puts {one.key}", paper, lambda r=results.get(one.key): opened(r), results.get(one.key))
            for one, paper in zip(ours, papers)
        ]
        fast = results.get("as fast as it goes")
        for key in intervals:
            one = results.get(key)
            found.append(row(f"index in DRAM, {key}: open after a crash", NOTHING, lambda r=one: opened(r), one))
            found.append(
                row(
                    f"index in DRAM (a slow stand-in), {key}: puts, over ours",
                    NOTHING,
                    lambda r=one: times(rate(r, "fillrandom"), rate(fast, "fillrandom")),
                    one,
                    fast,
                )
            )
            if intervals[key]:
                found.append(
                    row(f"index in DRAM, {key}: longest that all wait", "90 s, 100 million objects", lambda r=one: waited(r), one)
                )
        return found

    lead = (
        "The paper: recovery is immediate as long as puts come slower than merges take them, and 19 s at 7 to 9 million a "
        "second with 100 million objects; a synchronous checkpoint of a B+-tree blocks queries for 90 s.\nHere: the process"
        " ends without closing the database, and another one opens it. The synchronous checkpoint is an engine of its own, "
        "dram-checkpoint: an ordered index in DRAM and a log, written out by Boost.Serialization while operations wait. It has "
        "no persistent memory: its log is what the page cache has, so its puts are not as durable as ours. It is a stand-in, and a "
        "slow one: a std::map and a system call for each put, slower than LMDB. Its rates say nothing of such a design; what it shows "
        "is how long all wait for a checkpoint, and what an open loads."
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
    jobs.append(Job("counted", [*jobs[0].arguments, COUNTING], 2))  # writes only, no cache

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
        counted = results.get("counted")
        found.append(
            row(
                "bytes written per user byte, writes only",
                "104.4, FAST&FAIR 126.8, PACTree 91.5, as memory counts, in units of 256 bytes",
                lambda: written(counted, ("readrandomwriterandom",)),
                counted,
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
        "--benchmarks=fillrandom,readrandom",
        "--settle",
        f"--num={num}",
        f"--reads={num // 2}",
        "--key_size=8",
        "--value_size=1000",
        "--seed=42",
        "--histogram",
    ]
    engines = ",".join(["braiddb", "braiddb:nv_tree", *stores])
    jobs = [Job("stores", [*common, f"--engines={engines}"], 15)]

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
                    f"writes with all merges done, over {store}",
                    NOTHING,
                    lambda s=store: times(
                        rate(one, "fillrandom", "braiddb", "settled_ops_per_second"),
                        rate(one, "fillrandom", s, "settled_ops_per_second"),
                    ),
                    needed,
                )
            )
            found.append(
                row(
                    f"CPU time of a write with its merges, µs, BraidDB and {store}",
                    NOTHING,
                    lambda s=store: " and ".join(
                        f"{rate(one, 'fillrandom', e, 'settled_cpu_micros_per_op'):.2f}" for e in ("braiddb", s)
                    ),
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
        "--preset=listdb",
        f"--num={num}",
        "--value_size=100",
        f"--threads={cpus}",
        f"--duration={seconds}",
        "--histogram",
        "--seed=42",
    ]
    beside = [store for store in ("rocksdb", "lmdb") if store in stores]
    engines = f"--engines={','.join(['braiddb', *(beside or ['braiddb:nv_tree'])])}"
    sine = ["--sine_mix_rate", "--sine_mix_rate_noise=0.5", "--sine_mix_rate_interval_milliseconds=500", "--sine_b=1.2"]
    jobs = [
        Job("idle", [*common, engines, *sine, "--sine_a=20000", "--sine_d=60000"], 2 * seconds),
        Job("busy", [*common, engines, *sine, "--sine_a=400000", "--sine_d=1200000"], 2 * seconds),
    ]

    def followed(document, engine):
        def share(run):
            steps = run["demanded_rate"] + [[run["seconds"], 0]]
            return 100 * run["operations"] / sum(r * (until - at) for (at, r), (until, _) in zip(steps, steps[1:]))

        shares = [share(run) for run in runs_of(document, "mixgraph", engine)]
        return f"{statistics.median(shares):.0f} %{spread(shares)} of what was asked for"

    def rows(results):
        found = []
        for key in ("idle", "busy"):
            one = results.get(key)
            found.append(row(f"{key}: BraidDB", "follows the sine", lambda r=one: followed(r, "braiddb"), one))
            for store, name, paper in (
                ("rocksdb", "RocksDB", "Pmem-RocksDB: stuck at 200 k puts and 400 to 600 k gets a second"),
                ("lmdb", "LMDB", NOTHING),
            ):
                needed = one if store in beside else None
                found.append(row(f"{key}: {name}", paper, lambda r=one, s=store: followed(r, s), needed))
        return found

    lead = (
        "The paper: prefix_dist, put:get 3:7, keys of 48 bytes, values of 16 B to 10 KB, 80 threads, rates by a sine with "
        "noise of 0.5: ListDB follows, with 5 million puts and 13 million gets a second, and ends after 380 s; Pmem-RocksDB"
        " is stuck at 200 k and 400 to 600 k, and ends after 7400 s.\nHere: the same workload, two rates that suit two "
        "cores; beside what is installed of RocksDB and LMDB."
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
