"""The figures of scripts/bench --shapes: keys of each shape, with BraidDB's skiplist and NV-Tree beside LMDB.

Each figure is one command: a fill, reads right behind the fill, a merge of everything, the same reads again, and overwrites.
"""

import atexit
import functools
import os
import statistics
import tempfile

from paper_figure import NOTHING, Figure, Job, runs_of, spread
from paper_figures import others

SHAPES = (
    "random16",
    "decimal16",
    "user",
    "uuid",
    "tenant",
    "composite",
    "url",
    "sequence8",
    "random8",
    "reversed_time",
    "late200",
)
FILES = "files"  # the names of all files below FOLDER, one real set of keys
FOLDER = "/usr"
KEYS = (*SHAPES, FILES)
OURS = {"braiddb": "skiplist", "braiddb:nv_tree": "NV-Tree"}
THEIRS = "lmdb"
HEAD = ("keys", "what", *OURS.values(), "LMDB", *(f"{name} over LMDB" for name in OURS.values()))
SECONDS_OF_ALL = 600

PAIRS = 2_000_000  # with --scale=1
SEEKS = 200_000
# What the table shows of the benchmarks below, in their order. "#2": the second one of a name.
BENCHMARKS = "filluniquerandom,seekrandom,readseq,compact,seekrandom,readseq,readreverse,readrandom,overwrite"
FILL = "filluniquerandom"
ROWS = {
    FILL: "puts",
    "seekrandom": "right behind: seeks with 10 steps",
    "readseq": "right behind: keys in order",
    "seekrandom#2": "merged: seeks with 10 steps",
    "readseq#2": "merged: keys in order",
    "readreverse": "merged: keys backward",
    "readrandom": "merged: gets",
    "overwrite": "overwrites",
}
DRAM = "DRAM a key right behind the puts, bytes"


@functools.cache
def file_names():
    """A file with the names of all files below FOLDER, one a line, and their number. It is removed at the end."""
    names = [
        os.path.join(folder, name).encode(errors="surrogateescape")
        for folder, _, files in os.walk(FOLDER)
        for name in files
        if "\n" not in name
    ]
    descriptor, path = tempfile.mkstemp(prefix="braiddb-shapes.")
    atexit.register(os.unlink, path)
    with open(descriptor, "wb") as file:
        file.writelines(name + b"\n" for name in sorted(set(names)))
    return path, len(set(names))


def _arguments(key, scale, engines):
    keys, num = [f"--key_shape={key}"], max(int(PAIRS * scale), 1000)
    if key == FILES:
        path, count = file_names()
        keys, num = [f"--key_file={path}"], min(count, num)
    reads = max(int(SEEKS * scale), 1000)
    return [
        *keys,
        f"--engines={','.join(engines)}",
        f"--benchmarks={BENCHMARKS}",
        f"--num={num}",
        f"--reads={reads}",
        "--value_size=100",
        "--seek_nexts=10",
        "--seed=42",
    ]


def _dram(runs, num):
    """Bytes a key of each run: what the process's memory grew by from the first to the last sample."""
    grown = []
    for run in runs:
        state = run["state"]
        place = state["names"].index("process_dram_bytes")
        grown.append(max(state["samples"][-1][place] - state["samples"][0][place], 0) / num)
    return grown


def _cells(numbers, form):
    """Of each engine the median, with the spread over its rounds; then the ratios of the medians to LMDB's."""
    found = {engine: numbers(engine) for engine in (*OURS, THEIRS)}
    cells = [form.format(statistics.median(of)) + spread(of, form) if of else NOTHING for of in found.values()]
    theirs = found[THEIRS]
    for engine in OURS:
        there = found[engine] and theirs and statistics.median(theirs) > 0
        cells.append(f"{statistics.median(found[engine]) / statistics.median(theirs):.2f}" if there else NOTHING)
    return cells


def _rows(key, document):
    if document is None:
        return [(key, "not measured", *[NOTHING] * (len(HEAD) - 2))]

    def rates(benchmark):
        return lambda engine: [run["ops_per_second"] / 1000 for run in runs_of(document, benchmark, engine)]

    num = int(document.content["flags"]["num"])
    rows = [(key, f"{what}, k ops/s", *_cells(rates(benchmark), "{:.0f}")) for benchmark, what in ROWS.items()]
    dram = _cells(lambda engine: _dram(runs_of(document, FILL, engine), num), "{:.0f}")
    return [*rows, (key, DRAM, *dram)]


def figures(scale, _cpus, db_bench):
    """All of them. An engine that is not built in is left out of the commands, and its cells are empty."""
    engines = [*OURS, *others(db_bench, (THEIRS,))]
    made = []
    for key in KEYS:
        job = Job("1 thread", _arguments(key, scale, engines), 10)
        title = f"{key}: names of files below {FOLDER}" if key == FILES else f"{key}: --key_shape={key}"
        lead = "All engines in turn, new databases in each round, one thread, values of 100 bytes."

        def rows(results, key=key, job=job):
            return _rows(key, results.get(job.key))

        made.append(Figure(key, key, title, lead, [job], rows, None, ("speeds",), apart=True))
    return made
