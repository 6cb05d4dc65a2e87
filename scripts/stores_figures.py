"""The figures of scripts/bench --stores: every preset of db_bench and YCSB A to F, BraidDB beside RocksDB and LMDB.

Each figure is one command: all engines in turn, rounds with new databases, equal pages, rates with all merges done.
"""

import statistics
import subprocess

from paper_figure import NOTHING, Figure, Job, runs_of, spread
from paper_figures import others

ENGINES = ("braiddb", "rocksdb", "lmdb")
KEYS = ("fills", "prefix_dist", "prefix_random", "all_dist", "all_random", "zippydb", "listdb", "ycsb")
HEAD = ("workload", "benchmark", "engine", "k ops/s", "BraidDB's over it", "settled, k ops/s", "CPU, µs/op", "P99.9, µs")
SECONDS_OF_ALL = 2400

PAIRS = 1_000_000  # with --scale=1
EQUAL = ["--huge_pages=off", "--settle", "--histogram", "--seed=42"]


def presets(db_bench):
    """Names of all presets that this db_bench has."""
    said = subprocess.run([db_bench, "--preset=help"], capture_output=True, text=True, check=False).stdout.splitlines()
    return [line.split(":")[0] for line in said if line and not line.startswith(" ")]


def _arguments(key, scale, engines, threads):
    num = max(int(PAIRS * scale), 1000)
    common = [f"--engines={','.join(engines)}", f"--threads={threads}", *EQUAL]
    if key == "fills":
        benchmarks = "fillseq,fillrandom,overwrite,readrandom,readmissing,readseq,seekrandom,readwhilewriting"
        return [f"--benchmarks={benchmarks}", f"--num={num}", "--seek_nexts=10", *common]
    if key == "ycsb":
        return ["--preset=ycsb", f"--num={num // 2}", f"--reads={num // 2}", *common]
    # Values of the fill are as long as those of the preset on average, in the paper.
    fill = [f"--preset={key}", "--benchmarks=filluniquerandom,mixgraph", "--value_size=43"]
    return [*fill, f"--num={num}", f"--reads={num}", *common]


def _number(values, form="{:.0f}"):
    values = [value for value in values if value is not None]
    return form.format(statistics.median(values)) + spread(values, form) if values else NOTHING


def _tail(runs):
    kinds = dict.fromkeys(kind for run in runs for kind in run["latencies_us"])
    medians = [
        f"{kind} {statistics.median(run['latencies_us'][kind]['percentiles']['P99.9'] for run in runs if kind in run['latencies_us']):.1f}"
        for kind in kinds
    ]
    return ", ".join(medians) or NOTHING


def _row(workload, document, benchmark, engine):
    runs, ours = runs_of(document, benchmark, engine), runs_of(document, benchmark, ENGINES[0])
    if not runs:
        return (workload, benchmark, engine, "not measured", NOTHING, NOTHING, NOTHING, NOTHING)
    ratios = [mine["ops_per_second"] / run["ops_per_second"] for mine, run in zip(ours, runs)]
    settled = [run["settled_ops_per_second"] / 1000 for run in runs if "settled_ops_per_second" in run]
    return (
        workload,
        benchmark,
        engine,
        _number([run["ops_per_second"] / 1000 for run in runs]),
        NOTHING if engine == ENGINES[0] else _number(ratios, "{:.2f}"),
        _number(settled),
        _number([run.get("settled_cpu_micros_per_op", run["cpu_micros_per_op"]) for run in runs], "{:.2f}"),
        _tail(runs),
    )


def figures(scale, cpus, db_bench):
    """All of them. An engine that is not built in is left out of the commands, and its rows say "not measured"."""
    engines = ["braiddb", *others(db_bench, ENGINES[1:])]
    made = []
    for key in KEYS:
        jobs = [Job(f"{count} threads", _arguments(key, scale, engines, count), 10) for count in sorted({1, cpus})]

        def rows(results, key=key, jobs=jobs):
            found = []
            for job in jobs:
                document, workload = results.get(job.key), f"{key}, {job.key}"
                if document is None:
                    found.append((workload, NOTHING, NOTHING, "not measured", *[NOTHING] * 4))
                    continue
                benchmarks = dict.fromkeys(run["benchmark"] for run in document.content["runs"])
                found += [_row(workload, document, benchmark, engine) for benchmark in benchmarks for engine in ENGINES]
            return found

        title = f"{key}: BraidDB, RocksDB and LMDB"
        lead = "All engines in turn, new databases in each round, equal pages (--huge_pages=off), merges waited for (--settle)."
        made.append(Figure(key, key, title, lead, jobs, rows, None, ("speeds", "latencies"), apart=True))
    return made
