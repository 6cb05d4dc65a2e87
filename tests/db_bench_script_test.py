#!/usr/bin/env python3
"""One command line and one parser for RocksDB's db_bench and for ours: result lines, histograms, --report_file.

Run by ctest with BRAIDDB_DB_BENCH, the program. RocksDB's own is run as well if it is installed as db_bench, or named by
ROCKSDB_DB_BENCH; what it printed once is in tests/db_bench.
"""

import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(__file__).resolve().parent.parent
OURS = os.environ["BRAIDDB_DB_BENCH"]
THEIRS = os.environ.get("ROCKSDB_DB_BENCH") or shutil.which("db_bench")
DOCUMENT = (SOURCE / "docs/BENCHMARKING.md").read_text(encoding="utf-8")
# The flags that docs/BENCHMARKING.md says the preset is.
EXPANSION = DOCUMENT.split("`--preset=prefix_dist` is these flags")[1].split("`all_dist`")[0]
PREFIX_DIST = [flag for line in re.findall(r"^(--[a-z].*)$", EXPANSION, re.MULTILINE) for flag in line.split()]

NAMES = ["fillrandom", "readrandom", "seekrandom", "readwhilewriting", "overwrite", "mixgraph"]
LISTDB_MIX = ["--mix_get_ratio=0.7", "--mix_put_ratio=0.3", "--mix_seek_ratio=0"]  # of what RocksDB's printed once
ALL = [f"--benchmarks={','.join(NAMES)}", "--num=2000", "--seek_nexts=5", "--histogram=1", *PREFIX_DIST, *LISTDB_MIX]
TIMED = ["--benchmarks=fillrandom", "--num=2000", "--duration=3", "--report_interval_seconds=1"]

# In RocksDB's form, to the letter.
RESULT = re.compile(
    r"(?P<name>\w+) +: +(?P<micros>\d+\.\d{3}) micros/op (?P<rate>\d+) ops/sec (?P<seconds>\d+\.\d{3}) seconds "
    r"(?P<operations>\d+) operations;(?: +(?P<megabytes>\d+\.\d) MB/s)?(?P<message>.*)"
)
KIND = re.compile(r"Microseconds per (\w+):")
COUNT = re.compile(r"Count: (\d+) Average: (\d+\.\d{4})  StdDev: (\d+\.\d\d)")
EXTREMES = re.compile(r"Min: (\d+)  Median: (\d+\.\d{4})  Max: (\d+)")
PERCENTILES = re.compile(r"Percentiles: P50: ([\d.]+) P75: ([\d.]+) P99: ([\d.]+) P99\.9: ([\d.]+) P99\.99: ([\d.]+)")
BUCKET = re.compile(r"[\[(] *(\d+), +(\d+) \] +(\d+) +(\d+\.\d{3})% +(\d+\.\d{3})% #*")


def parse(output):
    """{benchmark: its result, with histograms by kind of operation}"""
    results, result, histogram = {}, None, None
    for line in output.splitlines():
        if match := RESULT.fullmatch(line):
            result = {**match.groupdict(), "histograms": {}}
            results[result["name"]] = result
        elif match := KIND.fullmatch(line):
            histogram = result["histograms"][match[1]] = {"buckets": []}
        elif match := COUNT.fullmatch(line):
            histogram["count"], histogram["average"] = int(match[1]), float(match[2])
        elif match := EXTREMES.fullmatch(line):
            histogram["min"], histogram["median"], histogram["max"] = int(match[1]), float(match[2]), int(match[3])
        elif match := PERCENTILES.fullmatch(line):
            histogram["percentiles"] = [float(number) for number in match.groups()]
        elif match := BUCKET.fullmatch(line):
            histogram["buckets"].append((int(match[1]), int(match[2]), int(match[3]), float(match[5])))
    return results


def parse_report(text):
    """[(second, operations of the interval)]"""
    head, *lines = text.splitlines()
    assert head == "secs_elapsed,interval_qps", head
    return [tuple(map(int, line.split(","))) for line in lines]


def new_folder():
    """In memory where that is possible: disks are slow, and here nothing is measured."""
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="braiddb-script-test-", dir=where)


class Output(unittest.TestCase):
    """What a program printed to ALL and TIMED."""

    def check(self, output):
        results = parse(output)
        self.assertEqual(list(results), NAMES)
        kinds = {name: set(result["histograms"]) for name, result in results.items()}
        self.assertEqual(
            kinds,
            {
                "fillrandom": {"write"},
                "readrandom": {"read"},
                "seekrandom": {"seek"},
                "readwhilewriting": {"read"},
                "overwrite": {"write"},
                "mixgraph": {"read", "write"},
            },
        )
        for name, result in results.items():
            self.assertEqual(int(result["operations"]), 2000, name)
            self.assertGreater(int(result["rate"]), 0)
            self.assertEqual(sum(histogram["count"] for histogram in result["histograms"].values()), 2000)
            for histogram in result["histograms"].values():
                self.check_histogram(histogram)
        for name in ("readrandom", "seekrandom", "readwhilewriting"):
            self.assertRegex(results[name]["message"], r" \(\d+ of 2000 found\)", name)
        self.assertRegex(
            results["mixgraph"]["message"],
            r"\( Gets:\d+ Puts:\d+ Seek:0, reads \d+ in \d+ found, avg size: \d+\.\d value, -?(\d+\.\d|nan) scan\)",
        )
        for name in ("fillrandom", "overwrite", "readrandom"):
            self.assertGreater(float(results[name]["megabytes"]), 0)

    def check_histogram(self, histogram):
        self.assertEqual(sum(count for _, _, count, _ in histogram["buckets"]), histogram["count"])
        self.assertEqual(histogram["buckets"][-1][3], 100)
        for before, behind in zip(histogram["buckets"], histogram["buckets"][1:]):
            self.assertTrue(before[0] < before[1] <= behind[0] < behind[1])
        numbers = [histogram["min"], *histogram["percentiles"], histogram["max"]]
        self.assertEqual(numbers, sorted(numbers))

    def check_report(self, text):
        rows = parse_report(text)
        self.assertGreaterEqual(len(rows), 2)
        seconds = [second for second, _ in rows]
        self.assertEqual(seconds, sorted(set(seconds)))
        self.assertTrue(all(count > 0 for _, count in rows))

    def check_program(self, program):
        with new_folder() as folder:
            command = [program, f"--db={folder}/db", "--seed=1", *(["--verify"] if program == OURS else [])]
            self.check(self.run_program([*command, *ALL]))
            self.run_program([*command, *TIMED, f"--report_file={folder}/report.csv"])
            self.check_report(pathlib.Path(folder, "report.csv").read_text(encoding="utf-8"))

    def run_program(self, command):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_what_rocksdb_printed(self):
        folder = SOURCE / "tests/db_bench"
        self.check((folder / "rocksdb_output.txt").read_text(encoding="utf-8"))
        self.check_report((folder / "rocksdb_report.csv").read_text(encoding="utf-8"))

    def test_what_ours_prints(self):
        self.check_program(OURS)

    def test_a_terminal_is_told_how_much_is_left(self):
        with new_folder() as folder:
            for limit in ("--duration=2", "--num=300000 --benchmark_write_rate_limit=17400000"):
                ours, terminal = pty.openpty()
                command = [OURS, f"--db={folder}/db", "--benchmarks=fillrandom", *limit.split()]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=terminal)
                os.close(terminal)
                said = os.read(ours, 1 << 16).decode()
                os.close(ours)
                told = re.findall(r"\r\.\.\. fillrandom: \d+ ops, \d+ ops/sec, (\d+) %, (\d+) s left", said)
                self.assertGreaterEqual(len(told), 2, said)
                percents = [int(percent) for percent, _ in told]
                self.assertEqual(percents, sorted(percents))
                self.assertTrue(0 < percents[0] < 100)

    def test_the_table_names_the_limit_of_each_ratio(self):
        limits = ("pmappend", "pmappendstream", "pmread", "pmreadindependent")
        with new_folder() as folder:
            names = f"{','.join(limits)},fillrandom,readrandom,compact"
            said = self.run_program([OURS, f"--db={folder}/db", "--num=2000", "--settle", f"--benchmarks={names}"])
        table = subprocess.run([SOURCE / "scripts/bench_table"], input=said, capture_output=True, text=True, check=True).stdout
        rows = {line.split()[0]: line for line in table.splitlines() if re.match(r"[a-z]+ +\d", line)}
        self.assertEqual(list(rows), [*limits, "fillrandom", "readrandom"])
        rates = {name: int(result["rate"]) for name, result in parse(said).items()}
        for name, compared in (("fillrandom", limits[:2]), ("readrandom", limits[2:])):
            ratios = ", ".join(f"{rates[name] / rates[limit]:.2f} of {limit}" for limit in compared)
            self.assertTrue(rows[name].endswith("   " + ratios), rows[name])
        settled = re.search(r"settled (\d+) ops/sec, \d+\.\d+ seconds, CPU (\d+\.\d+) micros/op", said)
        self.assertEqual(rows["fillrandom"].split()[3:5], [settled[1], settled[2]])
        self.assertEqual(rows["readrandom"].split()[3], "-")
        empty = subprocess.run([SOURCE / "scripts/bench_table"], input="", capture_output=True, text=True, check=False)
        self.assertEqual(empty.returncode, 1)

    @unittest.skipUnless(THEIRS, "RocksDB's db_bench is not installed (Debian: rocksdb-tools)")
    def test_what_rocksdb_prints(self):
        self.check_program(THEIRS)

    def test_the_preset_is_what_the_document_says(self):
        with new_folder() as folder:
            flags = []
            for chosen in (["--preset=prefix_dist"], PREFIX_DIST):
                self.run_program(
                    [OURS, f"--db={folder}/db", "--seed=1", "--num=100", "--benchmarks=mixgraph", f"--json={folder}/r.json", *chosen]
                )
                flags.append(json.loads(pathlib.Path(folder, "r.json").read_text(encoding="utf-8"))["flags"])
            self.assertEqual(flags[0].pop("preset"), "prefix_dist")
            self.assertEqual(flags[0], flags[1])


if __name__ == "__main__":
    unittest.main()
