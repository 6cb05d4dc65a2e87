"""What the figures show: runs of several files by engine and benchmark, their medians, ratios, curves over time, stalls."""

import statistics
from dataclasses import dataclass

# Flags that do not change what is measured, or that the labels have already.
NOT_COMPARED = {
    "db",
    "json",
    "seed",
    "report_file",
    "report_interval_seconds",
    "benchmarks",
    "engine",
    "engines",
    "rounds",
    "histogram",
    "statistics",
    "stats_interval",
    "stats_interval_seconds",
    "use_existing_db",
    "use_existing_keys",
}
# Intervals shorter than this, at the end of a run, go to the one before: a rate of one millisecond says nothing.
SHORTEST_INTERVAL = 0.05
# An interval with less than this share of the run's median rate is a stall.
STALL_SHARE = 0.1
MOST_POINTS = 300


@dataclass
class Run:
    """One run of a benchmark, and where it comes from."""

    label: str  # of the engine, and of what differs between files
    benchmark: str
    flags: dict
    document: object
    content: dict

    def __getitem__(self, name):
        return self.content[name]

    @property
    def rate(self):
        return self.content["ops_per_second"]

    def is_done_once(self):
        """As waitforcompaction or open: its time says something, its rate does not."""
        return self.content["operations"] <= 1


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def differing_flags(documents):
    """Names of flags that differ between the files, in the order of their names."""
    names = sorted(set().union(*(d.content["flags"] for d in documents)) - NOT_COMPARED) if documents else []
    return [name for name in names if len({d.content["flags"].get(name) for d in documents}) > 1]


def axis_flag(documents, differing):
    """The flag that a figure of scaling has on its x axis: threads if these differ, else a numeric one with most values."""
    numeric = [name for name in differing if all(_is_number(d.content["flags"].get(name, "")) for d in documents)]
    if "threads" in numeric:
        return "threads"
    return max(numeric, key=lambda name: len({d.content["flags"][name] for d in documents}), default=None)


def short_engine(engine):
    """A library by its file's name only."""
    name, colon, argument = engine.partition(":")
    return name + colon + argument.rsplit("/", 1)[-1]


def collect(documents, without=(), by_name=False):
    """All runs, in the order of files. Labels say what differs between the files, but for the flags of `without`; or the files'
    names."""
    engines = {run["engine"] for document in documents for run in document.content["runs"]}
    differing = [name for name in differing_flags(documents) if name not in without]
    runs = []
    for document in documents:
        flags = document.content["flags"]
        said = [f"{name}={flags.get(name, '')}" for name in differing]
        same = [d for d in documents if all(d.content["flags"].get(n) == flags.get(n) for n in differing)]
        if not said and len(documents) > 1 and not without:
            said = [document.name]
        elif len(same) > 1 and not without:
            said.append(document.name)
        for run in document.content["runs"]:
            label = " ".join([short_engine(run["engine"]), *said])
            if by_name:
                label = document.name if len(engines) == 1 else f"{document.name}, {short_engine(run['engine'])}"
            runs.append(Run(label, run["benchmark"], flags, document, run))
    return runs


def ordered(items):
    return list(dict.fromkeys(items))


def of(runs, **wanted):
    return [run for run in runs if all(getattr(run, name) == value for name, value in wanted.items())]


def median_run(runs):
    """The one whose rate is in the middle; of an even count the lower one."""
    return sorted(runs, key=lambda run: run.rate)[(len(runs) - 1) // 2]


def median(numbers):
    return statistics.median(numbers)


def times_better(first, other, more_is_better):
    """How many times better the first is than the other: 2 if it is twice as fast. None if that cannot be said."""
    if not (first > 0 and other > 0):
        return None
    return first / other if more_is_better else other / first


def intervals(run):
    """[(begin, end, operations per second)] from the progress of a run."""
    result = []
    points = run["progress"] if "progress" in run.content else []
    for (begin, before), (end, after) in zip(points, points[1:]):
        if end - begin < SHORTEST_INTERVAL and result:
            first, last, rate = result.pop()
            after += rate * (last - first) - before
            result.append((first, end, after / (end - first)))
        elif end > begin:
            result.append((begin, end, (after - before) / (end - begin)))
    return result


def stalls(rates):
    """[(begin, end)] in which next to nothing was done, of intervals; neighbours are one. The last interval is none: in it
    threads end one after the other."""
    if len(rates) < 3:
        return []
    least = STALL_SHARE * median([rate for _, _, rate in rates])
    found = []
    for begin, end, rate in rates[:-1]:
        if rate >= least:
            continue
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def thin(points):
    """At most MOST_POINTS of [(x, y)]: means of neighbours."""
    stride = -(-len(points) // MOST_POINTS)
    groups = [points[i : i + stride] for i in range(0, len(points), stride)]
    return [(sum(x for x, _ in g) / len(g), sum(y for _, y in g) / len(g)) for g in groups]


def column(run, name):
    """[(seconds, value)] of a figure of the state; empty if the run has none of that name."""
    state = run.content.get("state") or {"names": [], "samples": []}
    if name not in state["names"]:
        return []
    at = state["names"].index(name)
    return [(row[0], row[at]) for row in state["samples"]]


def states(run):
    """The samples of the state, each as a dict."""
    state = run.content.get("state") or {"names": [], "samples": []}
    return [dict(zip(state["names"], row)) for row in state["samples"]]


@dataclass
class Written:
    """Bytes that were written for each byte of the user's."""

    whole: float
    how: str  # COUNTED, ESTIMATED or GIVEN
    background: float = None  # of it, in the background; None: not known apart
    xplines: float = None  # the same in units of 256 bytes, as memory counts; None: not known
    lines_per_write: float = None
    xplines_per_write: float = None


COUNTED, ESTIMATED, GIVEN = "counted", "estimate", "system calls"
LINE, XPLINE = 64, 256  # bytes


def written_per_user_byte(run):
    """None if that cannot be told.

    BraidDB with --count_pm_writes: the cache lines, and the XPLines, that all threads flushed during the run. Without: what
    entries take in the log, and the lines that flushes and merges wrote in the background. Others: what they gave to system
    calls. A store that writes by a mapped file shows in none.
    """
    user, counters = run.content.get("written_bytes", 0), run.content.get("counters", {})
    if not user:
        return None
    writes = counters.get("writes", 0)
    if "pm_written_lines" in counters and "pm_written_xplines" in counters:
        lines, xplines = counters["pm_written_lines"], counters["pm_written_xplines"]
        return Written(
            LINE * lines / user,
            COUNTED,
            xplines=XPLINE * xplines / user,
            lines_per_write=lines / writes if writes else None,
            xplines_per_write=xplines / writes if writes else None,
        )
    if "log_bytes" in counters:
        background = LINE * counters.get("background_flushed_lines", 0)
        whole = counters["log_bytes"] + background
        return Written(
            whole / user, ESTIMATED, background=background / user, lines_per_write=whole / LINE / writes if writes else None
        )
    if counters.get("file_written_bytes", 0) < user / 2:
        return None
    return Written(counters["file_written_bytes"] / user, GIVEN)
