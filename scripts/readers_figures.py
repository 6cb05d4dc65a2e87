"""The figures of scripts/bench --readers: reads in another process than the writer's, with BraidDB beside LMDB.

Each figure is two commands: the same benchmarks with a thread of the writer's process that reads, and with a process that reads.
"""

import statistics

from paper_figure import NOTHING, Figure, Job, runs_of, spread
from paper_figures import others

SHAPES = ("random16", "decimal16")
KEYS = SHAPES
OURS, THEIRS = "braiddb", "lmdb"
INSIDE, OUTSIDE = "thread", "process"
HEAD = ("keys", "what", "BraidDB, inside", "BraidDB, process", "LMDB, process", "process over inside", "BraidDB over LMDB")
SECONDS_OF_ALL = 120

PAIRS = 1_000_000  # with --scale=1
READS = 100_000
BENCHMARKS = "filluniquerandom,readrandom,seekrandom,compact,readrandom,seekrandom,readwhilewriting,seekrandomwhilewriting"
RATE, WRITER = "ops_per_second", "background_ops_per_second"
ROWS = (
    ("readrandom", RATE, "gets right behind the puts"),
    ("seekrandom", RATE, "seeks with 10 steps right behind the puts"),
    ("readrandom#2", RATE, "merged: gets"),
    ("seekrandom#2", RATE, "merged: seeks with 10 steps"),
    ("readwhilewriting", RATE, "gets beside a writer"),
    ("readwhilewriting", WRITER, "the writer beside these gets"),
    ("seekrandomwhilewriting", RATE, "seeks with 10 steps beside a writer"),
    ("seekrandomwhilewriting", WRITER, "the writer beside these seeks"),
)


def _arguments(shape, scale, engines):
    return [
        f"--key_shape={shape}",
        f"--engines={','.join(engines)}",
        f"--benchmarks={BENCHMARKS}",
        f"--num={max(int(PAIRS * scale), 1000)}",
        f"--reads={max(int(READS * scale), 1000)}",
        "--value_size=100",
        "--seek_nexts=10",
        "--seed=42",
    ]


def _rows(shape, inside, outside):
    def rates(document, engine, benchmark, of):
        # A run without the field: the readers ended before the writer's first write.
        return [run.get(of, 0) / 1000 for run in runs_of(document, benchmark, engine)] if document is not None else []

    def ratio(ours, theirs):
        there = ours and theirs and statistics.median(theirs) > 0
        return f"{statistics.median(ours) / statistics.median(theirs):.2f}" if there else NOTHING

    rows = []
    for benchmark, of, what in ROWS:
        places = (inside, OURS), (outside, OURS), (outside, THEIRS)
        found = [rates(document, engine, benchmark, of) for document, engine in places]
        cells = [f"{statistics.median(numbers):.0f}{spread(numbers)}" if numbers else NOTHING for numbers in found]
        rows.append((shape, f"{what}, k ops/s", *cells, ratio(found[1], found[0]), ratio(found[1], found[2])))
    return rows


def figures(scale, _cpus, db_bench):
    """All of them. If LMDB is not built in, it is left out of the commands, and its cells are empty."""
    made = []
    for shape in SHAPES:
        arguments = _arguments(shape, scale, [OURS, *others(db_bench, (THEIRS,))])
        jobs = [Job(INSIDE, arguments, 10), Job(OUTSIDE, [*arguments, "--reader_processes=1"], 10)]
        lead = "One reader; new databases in each round. The writer's process has the database open all the time."

        def rows(results, shape=shape):
            return _rows(shape, results.get(INSIDE), results.get(OUTSIDE))

        made.append(Figure(shape, shape, f"{shape}: --key_shape={shape}", lead, jobs, rows, None, ("speeds",), apart=True))
    return made
