"""The campaign of scripts/torture, which builds the programs and starts this.

Each part is cut into jobs. A job is one command with a log of its own; what it has done so far, and what it found, are read
from the log. A job that has ended well leaves a file beside its log, and is not run again.
"""

import argparse
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

BIN = Path("build/release/bin")
PARTS = ("crash", "mutants", "stress", "mutation", "differential", "coverage")


@dataclass
class Job:
    name: str
    command: list[str]
    goal: int  # in the units of its part
    environment: dict[str, str] = field(default_factory=dict)
    may_skip: bool = False  # exit code 77: what it needs is not on this machine


@dataclass
class Part:
    name: str
    unit: str
    jobs: list[Job]
    # From a log, of an unfinished job too: what was done, by name; the first is in the part's unit.
    read: Callable[[str], dict[str, int]]
    parallel: bool = True


def number(pattern: str, text: str) -> int:
    """The number in the last place that matches; 0 if there is none."""
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def split(total: int, most: int) -> list[int]:
    """Cuts a total into nearly equal pieces of at most `most`."""
    pieces = max(1, math.ceil(total / most))
    return [total * (i + 1) // pieces - total * i // pieces for i in range(pieces)]


# ---- The parts: what is run, and how its output is to be read. Nothing else knows these programs.


def crash_part(options) -> Part:
    def read(log: str) -> dict[str, int]:
        # The report at the end, or the lines of progress before it.
        first = number(r"images: (\d+) first", log) or number(r"databases, (\d+) first", log)
        second = number(r"images: \d+ first, (\d+) second", log) or number(r"first and (\d+) second images", log)
        result = {"first images": first, "second images": second, "violations": number(r"violations: (\d+)", log)}
        fences = re.findall(r"fences: (\d+) of (\d+) in the code covered .* and (\d+) of (\d+) places", log)
        if fences:
            own, all_own, foreign, all_foreign = map(int, fences[-1])
            result["fences not covered"] = all_own - own + all_foreign - foreign
        return result

    total = max(1000, round(1_000_000 * options.scale))
    jobs = []
    for i, images in enumerate(split(total, min(100_000, max(500, math.ceil(total / options.jobs))))):
        keep = options.output / f"crash-{i}.files"
        command = [BIN / "crash_test", "--images", images, "--seed", options.seed * 1000 + i, "--keep", keep]
        jobs.append(Job(f"crash-{i}", [str(word) for word in command], images))
    return Part("crash", "images", jobs, read)


def mutants_part(options) -> Part:
    listed = subprocess.run([BIN / "crash_test", "--list-mutants"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines() if line.strip()]
    count = min(len(names), max(3, round(len(names) * options.scale)))
    chosen = [names[i * len(names) // count] for i in range(count)]
    command = ["ctest", "--test-dir", "build/release", "-L", "mutants", "-R", f"^mutant\\.({'|'.join(chosen)})$",
               "--parallel", str(options.jobs), "--output-on-failure", "--no-tests=error"]

    def read(log: str) -> dict[str, int]:
        return {"mutants found": len(re.findall(r"Test +#\d+: mutant\.\S+ \.+ +Passed", log)),
                "violations": len(re.findall(r"Test +#\d+: mutant\.\S+ \.+\**(?:Failed|Timeout|Exception)", log))}

    return Part("mutants", "mutants", [Job("mutants", command, count)], read, parallel=False)


def stress_part(options) -> Part:
    def read(log: str) -> dict[str, int]:
        return {"cycles": number(r"s: (\d+) cycles", log), "kills": number(r", (\d+) kills", log),
                "while opening": number(r"kills \((\d+) opening", log), "keys verified": number(r"(\d+) keys verified", log),
                "violations": number(r"(\d+) violations", log)}

    total = max(20, round(3500 * options.scale))  # of ten, nine are ended by a kill, the others by a close
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else os.environ.get("TMPDIR", "/tmp")
    jobs = []
    for i, cycles in enumerate(split(total, min(500, max(20, math.ceil(total / options.jobs))))):
        seed = options.seed * 1000 + i
        command = [BIN / "db_stress", "--cycles", cycles, "--seed", seed, "--db", f"{base}/braiddb-torture-{os.getpid()}-{seed}"]
        jobs.append(Job(f"stress-{i}", [str(word) for word in command], cycles))
    return Part("stress", "cycles", jobs, read)


def mutation_part(options) -> Part:
    program = str(BIN / "mutation_test")
    cases = subprocess.run([program, "--list-cases"], capture_output=True, text=True, check=True).stdout.split()

    def read(log: str) -> dict[str, int]:
        # The report at the end, or the lines of progress before it.
        return {"mutated opens": number(r"(\d+) mutated opens", log) or number(r": (\d+) opens", log),
                "violations": number(r"(\d+) bad outcomes", log) or number(r" opens, (\d+) bad", log)}

    opens = math.ceil(max(1200, 300_000 * options.scale) / len(cases))
    jobs = []
    for case in cases:
        keep = options.output / f"mutation-{case}.files"
        command = [program, "--case", case, "--opens", opens, "--seed", options.seed, "--keep", keep]
        if options.scale >= 1:
            command.append("--every-word")
        jobs.append(Job(f"mutation-{case}", [str(word) for word in command], opens))
    return Part("mutation", "opens", jobs, read)


def differential_part(options) -> Part:
    program = str(BIN / "differential_test")

    def read(log: str) -> dict[str, int]:
        # Without RocksDB's library there is nothing to compare with; the log says so.
        return {"sequences": number(r"(\d+) sequences", log), "calls": number(r"(\d+) calls", log),
                "skipped": len(re.findall(r"differential_test: skipped", log)), "violations": number(r"(\d+) differences", log)}

    total = max(100, round(10_000 * options.scale))
    jobs = []
    for i, sequences in enumerate(split(total, min(2500, max(50, math.ceil(total / options.jobs))))):
        command = [program, "--sequences", str(sequences), "--seed", str(options.seed * 1_000_000 + i * 10_000)]
        jobs.append(Job(f"differential-{i}", command, sequences, may_skip=True))
    return Part("differential", "sequences", jobs, read)


def coverage_part(options) -> Part:
    jobs = [Job("coverage", ["scripts/coverage"], 1)]
    return Part("coverage", "runs", jobs, lambda log: {"runs": 0, "violations": 0}, parallel=False)


# ---- Running


class Campaign:
    def __init__(self, options):
        self.options = options
        self.running: dict[str, subprocess.Popen] = {}
        self.stopped = False
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, self.stop)

    def stop(self, *_):
        self.stopped = True

    def log_of(self, job: Job) -> Path:
        return self.options.output / f"{job.name}.log"

    def result_of(self, job: Job) -> Path:
        return self.options.output / f"{job.name}.result"

    def read(self, part: Part, job: Job) -> dict[str, int]:
        done = self.result_of(job)
        if done.exists():
            return json.loads(done.read_text())
        log = self.log_of(job)
        return part.read(log.read_text(errors="replace")) if log.exists() else part.read("")

    def start(self, job: Job) -> subprocess.Popen:
        with self.log_of(job).open("w") as log:
            # Lines reach the log when they are written; a group of its own, so that it can be ended as a whole.
            return subprocess.Popen(["stdbuf", "-oL", *job.command], stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=subprocess.STDOUT, env={**os.environ, **job.environment}, start_new_session=True)

    def finish(self, part: Part, job: Job, exit_code: int) -> bool:
        result = part.read(self.log_of(job).read_text(errors="replace"))
        first = next(iter(result))
        skipped = exit_code == 77 and job.may_skip
        if skipped:
            print(f"torture: {self.log_of(job).read_text(errors='replace').strip()}", flush=True)
            exit_code = 0
        if exit_code != 0 or result["violations"] != 0:
            print(f"torture: {job.name} FAILED (exit code {exit_code}); see {self.log_of(job)}", flush=True)
            print(f"  {' '.join(job.command)}", flush=True)
            return False
        result[first] = max(result[first], 0 if skipped else 1)
        self.result_of(job).write_text(json.dumps(result))
        return True

    def run(self, part: Part) -> "Outcome":
        outcome = Outcome(part)
        waiting = [job for job in part.jobs if not self.result_of(job).exists()]
        for job in waiting:  # what an earlier run left of them does not count
            self.log_of(job).unlink(missing_ok=True)
        active: dict[str, tuple[Job, subprocess.Popen]] = {}
        before = self.count(part)
        start = last_report = time.monotonic()
        while (waiting and not self.stopped) or active:
            while waiting and not self.stopped and len(active) < (self.options.jobs if part.parallel else 1):
                job = waiting.pop(0)
                active[job.name] = (job, self.start(job))
            time.sleep(0.5)
            if self.stopped:
                for _, process in active.values():
                    os.killpg(process.pid, signal.SIGTERM)
                    process.wait()
                break
            for job, process in list(active.values()):
                if process.poll() is not None:
                    del active[job.name]
                    if not self.finish(part, job, process.returncode):
                        outcome.failed.append(job.name)
            if time.monotonic() - last_report >= self.options.progress:
                last_report = time.monotonic()
                self.report(part, before, last_report - start)
        outcome.seconds = time.monotonic() - start
        for job in part.jobs:
            outcome.add(self.read(part, job), finished=self.result_of(job).exists())
        return outcome

    def count(self, part: Part) -> int:
        return sum(next(iter(self.read(part, job).values())) for job in part.jobs)

    def report(self, part: Part, before: int, seconds: float):
        done, goal = self.count(part), sum(job.goal for job in part.jobs)
        rate = (done - before) / seconds
        left = f"{span((goal - done) / rate)} left" if rate > 0 and goal > done else ""
        print(f"{part.name:9} {done:>9,} of {goal:,} {part.unit}, {rate:.1f} per second  {left}", flush=True)


@dataclass
class Outcome:
    part: Part
    seconds: float = 0
    totals: dict[str, int] = field(default_factory=dict)
    finished: int = 0
    failed: list[str] = field(default_factory=list)

    def add(self, result: dict[str, int], finished: bool):
        self.finished += finished
        for name, value in result.items():
            # Jobs come through the same code: the one that covers most is what counts.
            best = name.startswith("fences") and name in self.totals
            self.totals[name] = min(self.totals[name], value) if best else self.totals.get(name, 0) + value

    def verdict(self) -> str:
        if self.failed or self.totals.get("violations"):
            return "FAILED"
        return "ok" if self.finished == len(self.part.jobs) else "unfinished"


def span(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min" if minutes else f"{seconds:.0f} s"


def print_table(outcomes: list[Outcome], options):
    print(f"\ntorture: scale {options.scale:g}, seed {options.seed}; logs in {options.output}\n")
    print(f"{'part':10} {'result':11} {'jobs':>9} {'time':>12}  what was done")
    for outcome in outcomes:
        work = ", ".join(f"{value:,} {name}" for name, value in outcome.totals.items())
        jobs = f"{outcome.finished}/{len(outcome.part.jobs)}"
        print(f"{outcome.part.name:10} {outcome.verdict():11} {jobs:>9} {span(outcome.seconds):>12}  {work}")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/torture")
    parser.add_argument("parts", nargs="*", help=" ".join(PARTS) + "; all unless given")
    parser.add_argument("--scale", type=float, default=1.0, help="0.01: a hundredth of everything")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="at a time")
    parser.add_argument("--output", type=Path, default=Path("build/torture"), help="directory for logs and results")
    parser.add_argument("--progress", type=float, default=10, help="seconds between lines of progress")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}; there are {', '.join(PARTS)}")
    if options.scale <= 0 or options.jobs < 1 or options.seed < 1:
        parser.error("--scale, --jobs and --seed must be positive")
    return options


def main() -> int:
    options = parse_arguments()
    options.output = options.output.absolute()
    options.output.mkdir(parents=True, exist_ok=True)
    # Results of another campaign, or of another version of the code, would be taken for those of this one.
    version = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    campaign_is = json.dumps({"scale": options.scale, "seed": options.seed, "jobs": options.jobs, "version": version})
    made_for = options.output / "campaign"
    if not made_for.exists() or made_for.read_text() != campaign_is:
        for old in options.output.glob("*.result"):
            old.unlink()
        made_for.write_text(campaign_is)

    makers = dict(zip(PARTS, (crash_part, mutants_part, stress_part, mutation_part, differential_part, coverage_part)))
    campaign = Campaign(options)
    outcomes = []
    for name in PARTS:
        if campaign.stopped or (options.parts and name not in options.parts):
            continue
        part = makers[name](options)
        print(f"==== torture: {name}", flush=True)
        outcomes.append(campaign.run(part))
    print_table(outcomes, options)
    if campaign.stopped:
        print("torture: stopped; the same command goes on")
    return 0 if all(outcome.verdict() == "ok" for outcome in outcomes) and not campaign.stopped else 1


if __name__ == "__main__":
    sys.exit(main())
