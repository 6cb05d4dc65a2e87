"""scripts/bench --paper, which builds the programs and starts this: ListDB's and NV-Tree's figures, scaled down to this machine.

Each figure is some jobs, a command and a result file each; then comes a page with all of them, and a table of what the papers
have beside what was measured here.
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
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from benchreport import build, load, page  # noqa: E402  after the path is known
from paper_figures import KEYS, figures  # noqa: E402

DOCUMENT = Path("docs/BENCHMARKING.md")
MARKS = ("<!-- paper: begin -->", "<!-- paper: end -->")


# What a full run takes, roughly, by which the rest is guessed until a job has ended; and the least that a job takes at any scale.
SECONDS_OF_ALL, LEAST_SCALE = 1300, 0.05


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
    parser.add_argument("directory", nargs="?", default="/dev/shm", help="for databases (/dev/shm)")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="of all counts (1: two million keys, fifteen minutes to half an hour)"
    )
    parser.add_argument("--quick", action="store_true", help="--scale=0.05: some two minutes, to see that everything runs")
    parser.add_argument("--only", help="figures, comma-separated: " + ", ".join(KEYS))
    parser.add_argument("--bin", type=Path, default=Path("build/release/bin"), help="where the programs are (build/release/bin)")
    parser.add_argument("--output", type=Path, default=Path("build/paper"), help="for results and the page (build/paper)")
    parser.add_argument("--again", action="store_true", help="make page and table of results that are there already")
    parser.add_argument("--update-docs", action="store_true", help=f"put the table into {DOCUMENT}")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.scale = 0.05
    if not 0.001 <= arguments.scale <= 1000:
        parser.error("--scale is not between 0.001 and 1000")
    if not os.access(arguments.directory, os.W_OK) or not os.path.isdir(arguments.directory):
        parser.error(f"'{arguments.directory}' is not a directory that can be written to")
    return arguments, parser


def chosen(arguments, parser):
    keys = KEYS if arguments.only is None else arguments.only.split(",")
    unknown = sorted(set(keys) - set(KEYS))
    if unknown:
        parser.error(f"there is no figure {', '.join(unknown)}")
    if not os.access(arguments.bin / "db_bench", os.X_OK):
        parser.error(f"there is no program {arguments.bin / 'db_bench'}; scripts/build makes it")
    every = figures(arguments.scale, os.cpu_count() or 1, arguments.bin / "db_bench")
    return [figure for figure in every if figure.key in keys]


def run_job(job, path, programs, work):
    """None, or what went wrong. The result file is there only if the job has ended well."""
    unfinished = path.with_suffix(path.suffix + ".part")
    command = [str(programs / job.program), *job.arguments]
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
    every = figures(arguments.scale, os.cpu_count() or 1, arguments.bin / "db_bench")
    share = sum(job.weight for _, job in jobs) / sum(job.weight for figure in every for job in figure.jobs)
    progress, failures = Progress([job for _, job in jobs], SECONDS_OF_ALL * share * max(arguments.scale, LEAST_SCALE)), []
    with tempfile.TemporaryDirectory(prefix="braiddb-paper.", dir=arguments.directory) as work:
        for number, (figure, job) in enumerate(jobs, start=1):
            path = figure.path(arguments.output, job)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # an older result is not this one's
            progress.begin(number, job)
            failure = run_job(job, path, arguments.bin, Path(work))
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


def make_page(wanted, results, failures, scale):
    documents = [one for of_figure in results.values() for one in of_figure.values()]
    head = build.head([one for one in documents if isinstance(one, load.Document)][:1])
    head += f'<p class="soft">Counts are {scale:g} of those of a full run.</p>'
    head += "".join(f'<p class="warn">{build.svg.escape(failure)}</p>' for failure in failures)
    sections = []
    for figure in wanted:
        files = list(results[figure.key].values())
        if files:
            sections.append(page.Section(figure.key, figure.title, "", figure.lead, figure.parts(files)))
    return page.page("BraidDB and the figures of its papers", head, sections)


def make_table(wanted, results, scale):
    """Markdown: what the papers have, and what was measured here."""
    documents = [one for of_figure in results.values() for one in of_figure.values() if isinstance(one, load.Document)]
    where = documents[0].content["environment"] if documents else {}
    lines = [
        f"Measured {where.get('date', 'at an unknown time')} on {where.get('cpus', '?')} × {where.get('cpu', '?')}, files on "
        f"{where.get('file_system', '?')}, version {where.get('commit') or where.get('version', '?')}, `--scale={scale:g}`.",
        "",
        "| figure | what | the paper | here |",
        "|---|---|---|---|",
    ]
    for figure in wanted:
        for what, paper, here in figure.rows(results[figure.key]):
            lines.append(f"| {figure.name} | {what} | {paper} | {here} |")
    return "\n".join(lines) + "\n"


def update_document(table):
    text = DOCUMENT.read_text(encoding="utf-8")
    if any(text.count(mark) != 1 for mark in MARKS) or text.index(MARKS[0]) > text.index(MARKS[1]):
        sys.exit(f"bench: {DOCUMENT} has not one {MARKS[0]} and one {MARKS[1]} behind it")
    before, behind = text.split(MARKS[0])[0], text.split(MARKS[1])[1]
    DOCUMENT.write_text(f"{before}{MARKS[0]}\n{table}{MARKS[1]}{behind}", encoding="utf-8")
    print(f"changed: {DOCUMENT}")


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
    table = make_table(wanted, results, arguments.scale)
    (arguments.output / "table.md").write_text(table, encoding="utf-8")
    (arguments.output / "index.html").write_text(make_page(wanted, results, failures, arguments.scale), encoding="utf-8")
    print(f"page: {arguments.output / 'index.html'}\ntable: {arguments.output / 'table.md'}")
    if arguments.update_docs:
        update_document(table)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
