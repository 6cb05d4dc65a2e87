"""Figures 5 to 12 of Yang et al., NV-Tree, FAST '15: each function gives one."""

from paper_figure import NOTHING, PAIRS, Figure, Job, rate, row, run_of, times, tree_row


def trees(scale):
    num = max(int(300_000 * scale), 1000)
    arguments = [f"--num={num}", "--flush=clflush"]
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

        def rebuilds():
            here = [tree_row(table, "nvtree", size, "insert") for size in (512, 4096)]
            counts = ", ".join(f"{one['rebuilds']:.0f}" for one in here)
            shares = ", ".join(f"{100 * one['rebuild_seconds'] * one['ops_per_second'] / num:.2f} %" for one in here)
            return f"{counts} rebuilds, {shares} of the insertions' time"

        found.append(row("figure 10a: rebuilds of inner nodes, 512 bytes and 4 KiB", "less than 1 % of the time", rebuilds, table))
        return found

    lead = (
        "The paper: a million insertions, updates, searches and deletions of 8-byte pairs, nodes of "
        "512 bytes to 4 KiB, clflush.\nHere: the same with fewer pairs. Figure 9, misses of "
        "the CPU's caches, needs its counters, which virtual machines rarely show."
    )
    return Figure(
        "nvtree-5-7",
        "NV-Tree 5, 7, 10a",
        "NV-Tree, figures 5, 7 and 10a: operations and rebuilds by size of nodes",
        lead,
        jobs,
        rows,
        None,
        ("trees",),
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


def tree_redis(scale, cpus, servers):
    num = max(int(PAIRS * scale / 10), 1000)
    base = ["--benchmarks=ycsb_load,ycsb_d,ycsb_a", f"--num={num}", f"--reads={num}", "--value_size=100", "--seed=42"]
    engines = ",".join(["braiddb:nv_tree", *servers])
    jobs = [
        Job(f"{name}, threads {threads}", [f"--engines={engines}", f"--threads={threads}", *flags, *base], 20)
        for name, flags in (("appendfsync everysec", []), ("appendfsync always", ["--sync"]))
        for threads in sorted({1, cpus})
    ]

    def rows(results):
        return [
            row(
                f"{workload}, {job.key}: {what}",
                paper,
                lambda r=results.get(job.key), b=b, o=ours, t=theirs: times(rate(r, b, o), rate(r, b, t)),
                results.get(job.key) if {ours, theirs} <= {"braiddb:nv_tree", *servers} else None,
            )
            for job in jobs
            for workload, b, most in (("StatusUpdate (YCSB D)", "ycsb_d", "3.2 ×"), ("SessionStore (YCSB A)", "ycsb_a", "4.8 ×"))
            for what, ours, theirs, paper in (
                ("over Redis, as a library", "braiddb:nv_tree", "redis", f"up to {most} Redis"),
                ("over Redis, behind a socket as well", "redis:resp_server", "redis", NOTHING),
            )
        ]

    lead = (
        "The paper: NV-Store beside Redis, whose log is on a RAM disk, each behind its server.\nHere: YCSB D and A. BraidDB as a "
        "library, which no protocol slows down, and behind the same socket and protocol as Redis: examples/resp_server, with "
        "the default last level. redis-server and hiredis must be installed."
    )
    return Figure(
        "nvtree-11-redis",
        "NV-Tree 11",
        "NV-Tree, figure 11: beside Redis",
        lead,
        jobs if servers else [],
        rows,
        "threads",
        ("speeds",),
        by_name=True,
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
