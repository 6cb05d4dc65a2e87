"""What a figure of scripts/bench --paper is made of, and how its rows read results."""

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from benchreport import build, load, model, page  # noqa: E402  after the path is known

PAIRS = 2_000_000  # of keys and values, with --scale=1
COUNTING = "--count_pm_writes"  # in jobs of their own, since it takes time
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
        if not any(COUNTING in job.arguments for job in self.jobs):
            return build.parts(documents, [], trees, self.axis, self.wanted, self.by_name, self.benchmarks)
        # What counts shows what was written and no times, and the others show all but that.
        counting = [one for one in documents if one.content["flags"].get("count_pm_writes") == "true"]
        timed = [one for one in documents if one not in counting]
        wanted = [anchor for anchor in self.wanted if anchor != "written"]
        parts = build.parts(timed, [], trees, self.axis, wanted, self.by_name, self.benchmarks)
        if "written" in self.wanted:
            parts += build.parts(counting, [], [], None, ("written",), self.by_name, self.benchmarks)
        return parts


# ---- Reading results. A job that failed has none: its rows say so.

NOTHING = "–"


class Rates(float):
    """The median of all rounds, which knows them all."""

    def __new__(cls, rounds):
        number = super().__new__(cls, statistics.median(rounds))
        number.rounds = list(rounds)
        return number


def runs_of(document, benchmark, engine=None):
    """Of one engine, the first one unless it is named: its runs in all rounds."""
    engine = engine or document.content["runs"][0]["engine"]
    return [run for run in document.content["runs"] if run["benchmark"] == benchmark and run["engine"] == engine]


def rate(document, benchmark, engine=None, of="ops_per_second"):
    return Rates([run[of] for run in runs_of(document, benchmark, engine)])


def run_of(document, benchmark, engine=None):
    """The run whose rate is in the middle; of an even count the lower one."""
    runs = sorted(runs_of(document, benchmark, engine), key=lambda run: run["ops_per_second"])
    return runs[(len(runs) - 1) // 2]


def spread(numbers, form="{:.0f}"):
    """In brackets the least and the greatest; nothing of one round."""
    numbers = list(numbers)
    return f" ({form.format(min(numbers))} to {form.format(max(numbers))})" if len(numbers) > 1 else ""


def written(document, benchmarks, engine=None):
    """What a job that counts wrote for each byte of the user's, all these benchmarks together."""
    runs = [run for run in document.content["runs"] if run["benchmark"] in benchmarks and engine in (None, run["engine"])]
    if any("pm_written_lines" not in run["counters"] for run in runs):
        return NOTHING  # no persistent memory, nor tmpfs in its place
    user = sum(run["written_bytes"] for run in runs)
    lines, xplines = (sum(run["counters"][f"pm_written_{name}"] for run in runs) for name in ("lines", "xplines"))
    return f"{model.LINE * lines / user:.1f} ({model.XPLINE * xplines / user:.1f} in XPLines)"


def tree_row(table, tree, node_bytes, benchmark):
    return next(row for row in table.rows if (row["tree"], row["node_bytes"], row["benchmark"]) == (tree, node_bytes, benchmark))


def times(ours, theirs):
    """How many times theirs ours is; behind it the least and the greatest by rounds."""
    if theirs <= 0:
        return NOTHING
    rounds = [a / b for a, b in zip(getattr(ours, "rounds", []), getattr(theirs, "rounds", [])) if b > 0]
    return f"{ours / theirs:.2f} ×" + spread(rounds, "{:.2f}")


def row(what, paper, here, *needed):
    """here() is called if the results that it needs are all there."""
    if any(one is None for one in needed):
        return what, paper, "not measured"
    return what, paper, here()
