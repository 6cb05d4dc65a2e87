"""What a figure of scripts/bench --paper is made of, and how its rows read results."""

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from benchreport import build, load, page  # noqa: E402  after the path is known

PAIRS = 2_000_000  # of keys and values, with --scale=1
SMALL = ["--key_size=8", "--value_size=8", "--seed=42"]


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


def tree_row(table, tree, node_bytes, benchmark):
    return next(row for row in table.rows if (row["tree"], row["node_bytes"], row["benchmark"]) == (tree, node_bytes, benchmark))


def times(ours, theirs):
    return f"{ours / theirs:.2f} ×" if theirs > 0 else NOTHING


def row(what, paper, here, *needed):
    """here() is called if the results that it needs are all there."""
    if any(one is None for one in needed):
        return what, paper, "not measured"
    return what, paper, here()
