"""The figures of scripts/bench --kinds: every kind of last level with the same keys, and LMDB beside them.

Each figure is two commands: one with times, without a lookup cache, so that reads show the last level; and one that counts what
is written to persistent memory.
"""

import statistics

from paper_figure import COUNTING, NOTHING, Figure, Job, runs_of, spread
from paper_figures import others

SHAPES = ("random16", "user")
KEYS = SHAPES
OURS = {
    "braiddb": "braided skiplist",
    "braiddb:nv_tree": "NV-Tree",
    "braiddb:lb_tree": "LB+-Tree",
    "braiddb:hybrid": "hybrid",
    "braiddb:sorted_runs": "sorted runs",
}
THEIRS = "lmdb"
HEAD = ("keys", "what", *OURS.values(), "LMDB")
SECONDS_OF_ALL = 150

PAIRS = 2_000_000  # with --scale=1
READS = 200_000
TIMED, COUNTED = "timed", "counted"
FILL, MERGE, OPEN, SEEK = "filluniquerandom", "compact", "open", "seekrandom"
BENCHMARKS = f"{FILL},{MERGE},{OPEN},readrandom,{SEEK},readseq,readrandom,overwrite,{MERGE}"
RATES = {
    FILL: "puts of new keys",
    "readrandom": "gets right after an open",
    "readrandom#2": "gets later",
    SEEK: "seeks with 10 steps",
    "readseq": "keys in order",
    "overwrite": "overwrites",
}
MERGES = {FILL: MERGE, "overwrite": f"{MERGE}#2"}  # the merge behind
MILLISECONDS = {MERGE: "merge of the new keys", f"{MERGE}#2": "merge of the overwrites", OPEN: "open"}


def _arguments(shape, scale, engines, benchmarks):
    return [
        f"--key_shape={shape}",
        f"--engines={','.join(engines)}",
        f"--benchmarks={benchmarks}",
        f"--num={max(int(PAIRS * scale), 1000)}",
        f"--reads={max(int(READS * scale), 1000)}",
        "--lookup_cache_size=0",
        "--value_size=100",
        "--seek_nexts=10",
        "--seed=42",
    ]


def _cells(numbers, form):
    """Of each engine the median, with the spread over its rounds."""
    found = (numbers(engine) for engine in (*OURS, THEIRS))
    return [form.format(statistics.median(of)) + spread(of, form) if of else NOTHING for of in found]


def _last(run, name):
    """The last sample of a state of the database; None: the engine has no such state."""
    names = run["state"]["names"]
    return run["state"]["samples"][-1][names.index(name)] if name in names else None


def _rows(shape, timed, counted):
    if timed is None:
        return [(shape, "not measured", *[NOTHING] * (len(HEAD) - 2))]
    num = int(timed.content["flags"]["num"])

    def of_state(name):
        def numbers(engine):
            values = [_last(run, name) for run in runs_of(timed, SEEK, engine)]
            return [value / num for value in values if value is not None] if engine in OURS else []

        return numbers

    def lines(benchmark):
        def numbers(engine):
            if counted is None or engine not in OURS:
                return []
            runs = [run for name in (benchmark, MERGES[benchmark]) for run in runs_of(counted, name, engine)]
            if any("pm_written_lines" not in run["counters"] for run in runs):
                return []
            return [sum(run["counters"]["pm_written_lines"] for run in runs) / num]

        return numbers

    rows = []
    for benchmark, what in RATES.items():
        rate = _cells(lambda engine, of=benchmark: [run["ops_per_second"] / 1000 for run in runs_of(timed, of, engine)], "{:.0f}")
        rows.append((shape, f"{what}, k ops/s", *rate))
    for benchmark, what in MILLISECONDS.items():
        took = _cells(lambda engine, of=benchmark: [1000 * run["seconds"] for run in runs_of(timed, of, engine)], "{:.0f}")
        rows.append((shape, f"{what}, ms", *took))
    rows.append((shape, "DRAM of the last level, bytes a key", *_cells(of_state("last_level_dram_bytes"), "{:.1f}")))
    rows.append((shape, "persistent memory of the last level, bytes a key", *_cells(of_state("last_level_pm_bytes"), "{:.1f}")))
    for benchmark in MERGES:
        rows.append((shape, f"{RATES[benchmark]}: cache lines written, with the merge", *_cells(lines(benchmark), "{:.1f}")))
    return rows


def figures(scale, _cpus, db_bench):
    """All of them. If LMDB is not built in, it is left out of the commands, and its cells are empty."""
    made = []
    for shape in SHAPES:
        engines = [*OURS, *others(db_bench, (THEIRS,))]
        counts = _arguments(shape, scale, list(OURS), f"{FILL},{MERGE},overwrite,{MERGE}")
        jobs = [Job(TIMED, _arguments(shape, scale, engines, BENCHMARKS), 10), Job(COUNTED, [*counts, COUNTING], 4)]
        lead = "All kinds in turn, new databases in each round, one thread, values of 100 bytes, no lookup cache."

        def rows(results, shape=shape):
            return _rows(shape, results.get(TIMED), results.get(COUNTED))

        made.append(Figure(shape, shape, f"{shape}: --key_shape={shape}", lead, jobs, rows, None, ("speeds", "written"), apart=True))
    return made
