#!/usr/bin/env python3
"""docs/RESULTS.md is what scripts/results.py makes of docs/results/*.json; and what scripts/bench --update-docs puts there.

Run by ctest with BRAIDDB_DB_BENCH, the program.
"""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent
DB_BENCH = os.environ["BRAIDDB_DB_BENCH"]
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "scripts"))

import results  # noqa: E402  after the path is known

A_RESULT = {
    "title": "A title",
    "about": "A sentence.",
    "measured": {"date": "today", "commit": "abc", "rounds": "3"},
    "commands": ["db_bench --num=1"],
    "head": ["benchmark", "k ops/s"],
    "rows": [["fillrandom", "1 (1 to 2)"]],
}


def script(*arguments, cwd):
    command = [SOURCE / "scripts/results.py", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


class OfTheTree(unittest.TestCase):
    def test_the_page_is_made_of_the_files(self):
        result = script("--check", cwd=SOURCE)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_files_say_when_and_on_what_and_have_no_paths(self):
        paths = list((SOURCE / "docs/results").glob("*.json"))
        self.assertTrue(paths)
        for path in paths:
            text = path.read_text(encoding="utf-8")
            self.assertEqual(re.findall(r'(?:^|[\s="(:,`])/\w+', text, re.MULTILINE), [], path)
            for result in results.load(path):
                self.assertTrue({"date", "commit"} <= set(result["measured"]), f"{path}: {result['title']}")
            self.assertEqual(text, results.file_text(json.loads(text)["results"]), f"{path} is not in the script's form")


class OfAFolder(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="braiddb-results-test-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)
        (self.folder / "docs/results").mkdir(parents=True)

    def put(self, name, result):
        path = self.folder / "docs/results" / f"{name}.json"
        path.write_text(results.file_text([result]), encoding="utf-8")
        return path

    def page(self):
        return (self.folder / "docs/RESULTS.md").read_text(encoding="utf-8")

    def test_a_change_by_hand_is_found(self):
        self.put("some", A_RESULT)
        self.assertEqual(script(cwd=self.folder).returncode, 0)
        self.assertEqual(script("--check", cwd=self.folder).returncode, 0)
        (self.folder / "docs/RESULTS.md").write_text(self.page().replace("1 (1 to 2)", "9 (1 to 2)"), encoding="utf-8")
        result = script("--check", cwd=self.folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn("run scripts/results.py", result.stderr)

    def test_older_figures_give_way_to_those_of_a_script(self):
        self.put("earlier", {**A_RESULT, "title": "Of before", "replaced_by": "paper"})
        script(cwd=self.folder)
        self.assertIn("## Of before", self.page())
        self.put("paper", A_RESULT)
        script(cwd=self.folder)
        self.assertNotIn("## Of before", self.page())
        self.assertIn("## A title", self.page())

    def test_files_that_no_page_can_be_made_of_are_named(self):
        for change, message in (
            ({"rows": [["one cell"]]}, "a row has not as many cells as the head"),
            ({"head": None}, "a result has no head"),
            ({"measured": {"mood": "good"}}, "unknown conditions ['mood']"),
        ):
            path = self.put("some", {**A_RESULT, **change})
            result = script(cwd=self.folder)
            self.assertEqual(result.returncode, 1)
            self.assertIn(str(path.relative_to(self.folder)), result.stderr)
            self.assertIn(message, result.stderr)
        self.assertFalse((self.folder / "docs/RESULTS.md").exists())

    def test_a_run_becomes_a_table_of_medians_and_ratios(self):
        run = self.folder / "run.json"
        names = "pmappend,pmappendstream,fillrandom,pmread,pmreadindependent,readrandom,compact"
        command = [DB_BENCH, f"--db={self.folder}/db", "--num=2000", "--rounds=3", "--settle", f"--json={run}", f"--benchmarks={names}"]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(said.returncode, 0, said.stderr)
        result = script("table", str(run), cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        (table,) = results.load(self.folder / "docs/results/table.json")
        self.assertEqual([row[0] for row in table["rows"]], names.split(",")[:-1])
        runs = json.loads(run.read_text(encoding="utf-8"))["runs"]
        rates = {name: [one["ops_per_second"] for one in runs if one["benchmark"] == name] for name in names.split(",")}
        for name, rate, settled, cpu, latency, throughput in table["rows"]:
            self.assertTrue(rate.startswith(f"{statistics.median(rates[name]) / 1000:.0f} ("), rate)
            self.assertRegex(cpu, r"^\d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\)$")
            self.assertEqual(settled == "–", name != "fillrandom", name)
            if name == "readrandom":
                ratios = [a / b for a, b in zip(rates[name], rates["pmread"])]
                self.assertEqual(latency, f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
            self.assertEqual(throughput == "–", name.startswith("pm"))
        self.assertEqual(table["measured"]["rounds"], "3")
        self.assertNotIn(str(self.folder), json.dumps(table))
        self.assertIn(f"--benchmarks={names}", self.page())


if __name__ == "__main__":
    unittest.main()
