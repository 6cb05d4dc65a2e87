"""scripts/bench --paper, which builds the programs and starts this: ListDB's and NV-Tree's figures, scaled down to this machine.
With --stores (scripts/bench --stores): every preset of db_bench and YCSB A to F beside RocksDB and LMDB, with equal pages.
With --shapes (scripts/bench --shapes): keys of each shape, and file names, in a skiplist and an NV-Tree beside LMDB.
With --readers (scripts/bench --readers): reads in another process than the writer's, beside LMDB.
With --kinds (scripts/bench --kinds): every kind of last level with the same keys, beside LMDB.

Each figure is some jobs, a command and a result file each; then comes a page with all of them, and a table of what the papers
have beside what was measured here. --update-docs puts the table into docs/results and makes docs/RESULTS.md again.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from benchreport import build, load, page  # noqa: E402  after the path is known
import kinds_figures  # noqa: E402
import paper_figures  # noqa: E402
import readers_figures  # noqa: E402
import results as published  # noqa: E402
import shapes_figures  # noqa: E402
import stores_figures  # noqa: E402
from paper_figure import COUNTING  # noqa: E402

LEAST_SCALE = 0.05  # a job takes at least as long as with this one
LEAST_ROUNDS = 3  # of what is published


@dataclass(frozen=True)
class Collection:
    """Figures that are run together and make one page and one table."""

    name: str
    title: str
    keys: tuple
    figures: Callable  # (scale, CPUs, db_bench) -> figures
    head: tuple  # of the table
    names_figures: bool  # the table's first column is the figure's name
    seconds: float  # that a round of everything takes, roughly: what the rest takes is guessed by it until a job has ended
    about: str  # what docs/RESULTS.md says of the table


PAPER = Collection(
    "paper",
    "BraidDB and the figures of its papers",
    paper_figures.KEYS,
    paper_figures.figures,
    ("figure", "what", "the paper", "here"),
    True,
    1300,
    "Scaled-down versions of the figures of ListDB (OSDI '22) and NV-Tree (FAST '15), with the papers' own numbers. The papers' "
    "machines had other memory and up to 80 threads. BENCHMARKING.md says how a figure is emulated.",
)
STORES = Collection(
    "stores",
    "BraidDB beside RocksDB and LMDB",
    stores_figures.KEYS,
    stores_figures.figures,
    stores_figures.HEAD,
    False,
    stores_figures.SECONDS_OF_ALL,
    "All engines run in turn with new databases in each round, equal pages (`--huge_pages=off`) and merges waited for "
    "(`--settle`). CPU time includes merges.",
)
SHAPES = Collection(
    "shapes",
    "Keys of each shape",
    shapes_figures.KEYS,
    shapes_figures.figures,
    shapes_figures.HEAD,
    False,
    shapes_figures.SECONDS_OF_ALL,
    "A fill in random order, reads right behind it, a merge of everything, the same reads again, and overwrites; values of 100 "
    "bytes. Rates in thousands a second. Ratios are of medians.",
)


READERS = Collection(
    "readers",
    "Readers in other processes",
    readers_figures.KEYS,
    readers_figures.figures,
    readers_figures.HEAD,
    False,
    readers_figures.SECONDS_OF_ALL,
    "One process has the database open for writing. One thread of it reads, or one other process. Values of 100 bytes. Rates in "
    "thousands a second. Ratios are of medians.",
)
KINDS = Collection(
    "kinds",
    "Kinds of last level",
    kinds_figures.KEYS,
    kinds_figures.figures,
    kinds_figures.HEAD,
    False,
    kinds_figures.SECONDS_OF_ALL,
    "The same puts, reads and merges with each kind, one thread, values of 100 bytes. Without a lookup cache, so that reads show the "
    "last level. Reads follow a merge of everything. An open before the gets; an index that is built in the background is not "
    "there at once.",
)
COLLECTIONS = {collection.name: collection for collection in (STORES, SHAPES, READERS, KINDS)}  # by their options


class Progress:
    """Lines of what runs, how much is done and how long the rest takes: by what was done so far, and the jobs' weights. On a
    terminal it is one line, which is written again each second."""

    def __init__(self, jobs, seconds, output=sys.stdout, clock=time.monotonic):
        self.jobs, self.output, self.clock = jobs, output, clock
        self.whole = sum(job.weight for job in jobs)
        self.guess = seconds / self.whole  # of a weight of 1
        self.done, self.started = 0.0, clock()
        self.ended = self.started  # the last job, or none
        self.text, self.running = "", 0.0  # what runs now, and its weight
        self.terminal = output.isatty()
        self.lock, self.stopped = threading.Lock(), threading.Event()
        if self.terminal:
            threading.Thread(target=self._again, daemon=True).start()

    def _again(self):
        while not self.stopped.wait(1):
            with self.lock:
                if self.running > 0:
                    self._write()

    def line(self):
        each = (self.ended - self.started) / self.done if self.done > 0 else self.guess
        here = min((self.clock() - self.ended) / each, 0.95 * self.running) if each > 0 else 0
        rest = each * (self.whole - self.done - here)
        left = f"{rest / 60:.0f} min" if rest >= 90 else f"{rest:.0f} s"
        return f"{self.text}; {100 * (self.done + here) / self.whole:.0f} %, about {left} left"

    def _write(self):
        before, behind = ("\r", "\033[K") if self.terminal else ("", "\n")
        print(f"{before}{self.line()}", end=behind, flush=True, file=self.output)

    def begin(self, number, job):
        with self.lock:
            self.text, self.running = f"[{number}/{len(self.jobs)}] {job.name}", job.weight
            self._write()

    def end(self, job):
        with self.lock:
            self.done, self.running, self.ended = self.done + job.weight, 0.0, self.clock()

    def say(self, text):
        with self.lock:
            print(f"\r{text}\033[K" if self.terminal else text, flush=True, file=self.output)

    def stop(self):
        self.stopped.set()


def parse():
    parser = argparse.ArgumentParser(
        prog="bench --paper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stores", action="store_true", help="every preset and YCSB A to F beside RocksDB and LMDB")
    parser.add_argument("--shapes", action="store_true", help="keys of each shape, beside LMDB")
    parser.add_argument("--readers", action="store_true", help="reads in another process than the writer's, beside LMDB")
    parser.add_argument("--kinds", action="store_true", help="every kind of last level with the same keys, beside LMDB")
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS, help="new databases of each job; medians are shown (3)")
    parser.add_argument("directory", nargs="?", default="/dev/shm", help="for databases (/dev/shm)")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="of all counts (1: one or two million keys, an hour or two)"
    )
    parser.add_argument("--quick", action="store_true", help="--scale=0.05: some two minutes, to see that everything runs")
    parser.add_argument("--only", help="figures, comma-separated: " + ", ".join((*PAPER.keys, *STORES.keys, *SHAPES.keys, *READERS.keys, *KINDS.keys)))
    parser.add_argument("--bin", type=Path, default=Path("build/release/bin"), help="where the programs are (build/release/bin)")
    parser.add_argument("--output", type=Path, help="for results and the page (build/paper, or build/ and the option's name)")
    parser.add_argument("--again", action="store_true", help="make page and table of results that are there already")
    parser.add_argument("--update-docs", action="store_true", help=f"put the table into {published.FOLDER} and {published.PAGE}")
    arguments = parser.parse_args()
    # db_bench starts examples/resp_server by its name.
    os.environ["PATH"] = f"{arguments.bin.resolve()}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    asked = [name for name in COLLECTIONS if getattr(arguments, name)]
    if len(asked) > 1:
        parser.error(f"--{asked[0]} and --{asked[1]} exclude each other")
    arguments.collection = COLLECTIONS[asked[0]] if asked else PAPER
    arguments.output = arguments.output or Path("build") / arguments.collection.name
    if not 1 <= arguments.rounds <= 1000:
        parser.error("--rounds is not between 1 and 1000")
    if arguments.update_docs and arguments.rounds < LEAST_ROUNDS:
        parser.error(f"--update-docs needs --rounds={LEAST_ROUNDS} or more")
    if arguments.quick:
        arguments.scale = 0.05
    if not 0.001 <= arguments.scale <= 1000:
        parser.error("--scale is not between 0.001 and 1000")
    if not os.access(arguments.directory, os.W_OK) or not os.path.isdir(arguments.directory):
        parser.error(f"'{arguments.directory}' is not a directory that can be written to")
    return arguments, parser


def chosen(arguments, parser):
    known = arguments.collection.keys
    keys = known if arguments.only is None else arguments.only.split(",")
    unknown = sorted(set(keys) - set(known))
    if unknown:
        parser.error(f"there is no figure {', '.join(unknown)}")
    if not os.access(arguments.bin / "db_bench", os.X_OK):
        parser.error(f"there is no program {arguments.bin / 'db_bench'}; scripts/build makes it")
    every = arguments.collection.figures(arguments.scale, os.cpu_count() or 1, arguments.bin / "db_bench")
    return [figure for figure in every if figure.key in keys]


def run_job(job, path, programs, work, rounds):
    """None, or what went wrong. The result file is there only if the job has ended well."""
    unfinished = path.with_suffix(path.suffix + ".part")
    # What is counted and not timed hardly differs from round to round.
    rounds = 1 if COUNTING in job.arguments else rounds
    command = [str(programs / job.program), *job.arguments, f"--rounds={rounds}"]
    command += (
        [f"--db={work}/db", f"--json={unfinished}"] if job.program == "db_bench" else [f"--path={work}/pm", f"--csv={unfinished}"]
    )
    log = path.with_suffix(".log")
    with open(log, "w", encoding="utf-8") as output:
        code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    shutil.rmtree(work / "db", ignore_errors=True)
    shutil.rmtree(work / "pm", ignore_errors=True)
    if code == 0:
        unfinished.replace(path)
        return None
    unfinished.unlink(missing_ok=True)
    last = (log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["it said nothing"])[-1]
    return f"{job.name}: ended with {code}: {last} ({log})"


def run_all(wanted, arguments):
    """Runs all jobs; returns what went wrong."""
    jobs = [(figure, job) for figure in wanted for job in figure.jobs]
    collection = arguments.collection
    every = collection.figures(arguments.scale, os.cpu_count() or 1, arguments.bin / "db_bench")
    share = sum(job.weight for _, job in jobs) / sum(job.weight for figure in every for job in figure.jobs)
    seconds = collection.seconds * arguments.rounds * share * max(arguments.scale, LEAST_SCALE)
    progress, failures = Progress([job for _, job in jobs], seconds), []
    with tempfile.TemporaryDirectory(prefix=f"braiddb-{collection.name}.", dir=arguments.directory) as work:
        for number, (figure, job) in enumerate(jobs, start=1):
            path = figure.path(arguments.output, job)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # an older result is not this one's
            progress.begin(number, job)
            failure = run_job(job, path, arguments.bin, Path(work), arguments.rounds)
            progress.end(job)
            if failure:
                failures.append(failure)
                progress.say(failure)
    progress.stop()
    progress.say(f"{len(jobs) - len(failures)} of {len(jobs)} jobs done in {time.monotonic() - progress.started:.0f} s")
    return failures


def results_of(figure, output):
    """{job's key: what was loaded}, of jobs whose results are there."""
    paths = {job.key: figure.path(output, job) for job in figure.jobs}
    return {key: load.load(str(path)) for key, path in paths.items() if path.exists()}


def rounds_of(results):
    """Of the timed results: the least, and the greatest."""
    counts = [
        int(one.content["flags"].get("rounds", 1))
        for of_figure in results.values()
        for one in of_figure.values()
        if isinstance(one, load.Document) and one.content["flags"].get("count_pm_writes") != "true"
    ]
    return f"{min(counts)}" if counts and min(counts) == max(counts) else f"{min(counts, default=0)} to {max(counts, default=0)}"


def make_page(collection, wanted, results, failures, scale):
    documents = [one for of_figure in results.values() for one in of_figure.values()]
    head = build.head([one for one in documents if isinstance(one, load.Document)][:1])
    head += f'<p class="soft">Counts are {scale:g} of those of a full run. Medians of {rounds_of(results)} rounds.</p>'
    head += "".join(f'<p class="warn">{build.svg.escape(failure)}</p>' for failure in failures)
    sections = []
    for figure in wanted:
        files = list(results[figure.key].values())
        if files:
            sections.append(page.Section(figure.key, figure.title, "", figure.lead, figure.parts(files)))
    return page.page(collection.title, head, sections)


def environment_of(results):
    documents = [one for of_figure in results.values() for one in of_figure.values() if isinstance(one, load.Document)]
    return documents[0].content["environment"] if documents else {}


def rows_of(collection, wanted, results):
    """Cells of the table, a list for each row."""
    return [
        [figure.name, *cells] if collection.names_figures else list(cells)
        for figure in wanted
        for cells in figure.rows(results[figure.key])
    ]


def make_table(collection, wanted, results, scale):
    """Markdown, with the machine, the commit, the rounds, and of rates the least and the greatest in brackets."""
    where = environment_of(results)
    lines = [
        f"Measured {where.get('date', 'at an unknown time')} on {where.get('cpus', '?')} × {where.get('cpu', '?')}, files on "
        f"{where.get('file_system', '?')}, commit {where.get('commit') or 'unknown'}, `--scale={scale:g}`, medians of "
        f"{rounds_of(results)} rounds, in brackets the least and the greatest.",
        "",
        f"| {' | '.join(collection.head)} |",
        "|" + "---|" * len(collection.head),
        *(f"| {' | '.join(cells)} |" for cells in rows_of(collection, wanted, results)),
    ]
    return "\n".join(lines) + "\n"


def publish(collection, wanted, results, arguments):
    """Puts the table into docs/results, and makes docs/RESULTS.md again."""
    command = f"scripts/bench --{collection.name} --scale={arguments.scale:g} --rounds={rounds_of(results)}"
    if len(wanted) < len(collection.keys):
        command += f" --only={','.join(figure.key for figure in wanted)}"
    result = {
        "title": collection.title,
        "about": collection.about,
        "measured": published.conditions(environment_of(results), rounds_of(results)),
        "commands": [command],
        "head": list(collection.head),
        "rows": rows_of(collection, wanted, results),
    }
    try:
        published.write(collection.name, [result])
    except published.ResultError as error:
        sys.exit(f"bench: {error}")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the databases are removed
    arguments, parser = parse()
    arguments.output.mkdir(parents=True, exist_ok=True)
    scale_file = arguments.output / "scale.json"
    if arguments.again and scale_file.exists():
        arguments.scale = json.loads(scale_file.read_text(encoding="utf-8"))
    wanted = chosen(arguments, parser)
    failures = [] if arguments.again else run_all(wanted, arguments)
    if not arguments.again:
        scale_file.write_text(json.dumps(arguments.scale), encoding="utf-8")
    try:
        results = {figure.key: results_of(figure, arguments.output) for figure in wanted}
    except load.InputError as error:
        sys.exit(f"bench: {error}")
    if not any(results.values()):
        sys.exit(f"bench: there are no results in {arguments.output}")
    collection = arguments.collection
    table = make_table(collection, wanted, results, arguments.scale)
    (arguments.output / "table.md").write_text(table, encoding="utf-8")
    made = make_page(collection, wanted, results, failures, arguments.scale)
    (arguments.output / "index.html").write_text(made, encoding="utf-8")
    print(f"page: {arguments.output / 'index.html'}\ntable: {arguments.output / 'table.md'}")
    if arguments.update_docs:
        publish(collection, wanted, results, arguments)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
