#!/usr/bin/env python3
"""scripts/bench --paper: results, page and table agree, what fails is said, and the tree changes only if that is asked for.

Run by ctest with BRAIDDB_BIN, the folder of the programs.
"""

import io
import json
import os
import pathlib
import re
import stat
import statistics
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

SOURCE = pathlib.Path(__file__).resolve().parent.parent
BIN = os.environ["BRAIDDB_BIN"]
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "scripts"))

import paper  # noqa: E402
import paper_figure  # noqa: E402
import paper_figures  # noqa: E402  after the path is known
import kinds_figures  # noqa: E402
import readers_figures  # noqa: E402
import shapes_figures  # noqa: E402
import stores_figures  # noqa: E402
from benchreport import load  # noqa: E402

DOCUMENT = "what was there\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Progress(unittest.TestCase):
    def test_percent_and_the_rest_are_told_from_the_start_on(self):
        now = [100.0]
        jobs = [paper_figure.Job("a", [], 1, name="F: a"), paper_figure.Job("b", [], 3, name="F: b")]
        progress = paper.Progress(jobs, 40, io.StringIO(), lambda: now[0])
        progress.begin(1, jobs[0])
        self.assertEqual(progress.line(), "[1/2] F: a; 0 %, about 40 s left")
        now[0] += 5
        self.assertEqual(progress.line(), "[1/2] F: a; 12 %, about 35 s left")
        now[0] += 95  # longer than was guessed
        self.assertEqual(progress.line(), "[1/2] F: a; 24 %, about 30 s left")
        progress.end(jobs[0])
        progress.begin(2, jobs[1])
        self.assertEqual(progress.line(), "[2/2] F: b; 25 %, about 5 min left")
        now[0] += 150
        self.assertEqual(progress.line(), "[2/2] F: b; 62 %, about 2 min left")

    def test_a_terminal_gets_a_line_each_second(self):
        job = paper_figure.Job("a", [], 1, name="F: a")
        terminal = Terminal()
        progress = paper.Progress([job], 100, terminal)
        progress.begin(1, job)
        patience = time.monotonic() + 240
        while terminal.getvalue().count("\r") < 3 and time.monotonic() < patience:
            time.sleep(0.1)
        progress.stop()
        lines = terminal.getvalue().split("\r")[1:]
        self.assertGreaterEqual(len(lines), 3)
        self.assertEqual(lines[0], "[1/1] F: a; 0 %, about 2 min left\033[K")
        self.assertRegex(lines[2], r"\[1/1\] F: a; [1-9]\d* %, about (2 min|\d+ s) left")


class Paper(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="braiddb-paper-test-")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)
        (self.folder / "docs").mkdir()
        self.document = self.folder / "docs/RESULTS.md"
        self.document.write_text(DOCUMENT, encoding="utf-8")

    def paper(self, *arguments, programs=BIN):
        command = [sys.executable, SOURCE / "scripts/paper.py", "--scale=0.001", f"--bin={programs}", "--output=out", *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)

    def rows(self):
        table = (self.folder / "out/table.md").read_text(encoding="utf-8").splitlines()
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in table if re.match(r"\| (ListDB|NV-Tree)", line)]

    def test_table_and_page_have_the_results(self):
        result = self.paper("--only=listdb-14,nvtree-12")
        self.assertEqual(result.returncode, 0, result.stderr)
        has_checkpoints = bool(paper_figures.others(f"{BIN}/db_bench", ("dram-checkpoint",)))
        count = 9 + (4 if has_checkpoints else 0)
        self.assertIn(f"{count} of {count} jobs done", result.stdout)
        self.assertRegex(result.stdout, rf"\[2/{count}\] ListDB 14: 500 k a second; \d+ %, about \d+ (s|min) left")
        files = sorted(
            str(path.relative_to(self.folder / "out"))
            for path in (self.folder / "out").rglob("*")
            if path.suffix in (".json", ".csv")
        )
        self.assertEqual(len(files), count + 1)
        runs = json.loads((self.folder / "out/listdb-14/as fast as it goes.json").read_text())["runs"]
        opens = sorted((run for run in runs if run["benchmark"] == "open"), key=lambda run: -run["seconds"])
        self.assertEqual(len(opens), 3)
        run, times = opens[1], [f"{run['seconds'] * 1000:.0f}" for run in opens]
        said = f"{times[1]} ms ({times[2]} to {times[0]}), {run['counters']['replayed_entries']:,} entries replayed"
        rows = {row[1]: row[3] for row in self.rows()}
        self.assertEqual(rows["open after a crash, puts as fast as it goes"], said)
        waits = rows["index in DRAM, synchronous checkpoint every 1,000 puts: longest that all wait"]
        self.assertRegex(waits, r"^\d+ ms, \d+\.\d\d s of all$" if has_checkpoints else "^not measured$")
        base, slow = (load.load(str(self.folder / f"out/nvtree-12/{ns} ns a line.csv")) for ns in (0, 180))
        shares = [
            paper_figure.tree_row(base, tree, 4096, "insert")["ops_per_second"]
            / paper_figure.tree_row(slow, tree, 4096, "insert")["ops_per_second"]
            - 1
            for tree in ("nvtree", "lcb", "cdds")
        ]
        here = next(row[3] for row in self.rows() if "180 ns" in row[1])
        self.assertEqual(here, ", ".join(f"{100 * share:.0f} %" for share in shares))
        page = (self.folder / "out/index.html").read_text(encoding="utf-8")
        self.assertIn("ListDB, figure 14: recovery", page)
        self.assertIn("Medians of 3 rounds.", page)
        commit = json.loads((self.folder / "out/listdb-14/as fast as it goes.json").read_text())["environment"]["commit"]
        table = (self.folder / "out/table.md").read_text(encoding="utf-8")
        self.assertIn(f"commit {commit or 'unknown'}, `--scale=0.001`, medians of 3 rounds, in brackets the least and the greatest.", table)
        self.assertIn("slow", page)  # what dram-checkpoint is
        self.assertIn(f"{run['seconds'] * 1000:.2f}", page)
        self.assertEqual(self.document.read_text(encoding="utf-8"), DOCUMENT)

    def test_writes_beside_other_stores_are_also_those_with_all_merges(self):
        result = self.paper("--only=listdb-16")
        self.assertEqual(result.returncode, 0, result.stderr)
        content = json.loads((self.folder / "out/listdb-16/stores.json").read_text())
        engines = {run["engine"] for run in content["runs"]}
        rows = {row[1]: row[3] for row in self.rows()}
        for store in ("rocksdb", "lmdb", "leveldb"):
            settled = rows[f"writes with all merges done, over {store}"]
            if store not in engines:
                self.assertEqual(settled, "not measured")
                continue
            ours, theirs = (
                [run["settled_ops_per_second"] for run in content["runs"] if run["engine"] == engine and run["benchmark"] == "fillrandom"]
                for engine in ("braiddb", store)
            )
            ratios = [a / b for a, b in zip(ours, theirs)]
            ratio = statistics.median(ours) / statistics.median(theirs)
            self.assertEqual(settled, f"{ratio:.2f} × ({min(ratios):.2f} to {max(ratios):.2f})")
            self.assertRegex(rows[f"CPU time of a write with its merges, µs, BraidDB and {store}"], r"^\d+\.\d\d and \d+\.\d\d$")

    def test_what_is_written_is_counted_by_jobs_of_their_own(self):
        result = self.paper("--only=listdb-9-merges")
        self.assertEqual(result.returncode, 0, result.stderr)
        timed, counted = (
            json.loads((self.folder / f"out/listdb-9-merges/{key}.json").read_text())["runs"] for key in ("log", "counted")
        )
        self.assertFalse([run for run in timed if "pm_fences" in run["counters"]])
        rows = {row[1]: row[3] for row in self.rows()}
        for name, engine in (("zipper", "braiddb"), ("NV-Tree", "braiddb:nv_tree"), ("copying", "braiddb:sorted_runs")):
            runs = [run for run in counted if run["engine"] == engine]
            self.assertEqual([run["benchmark"] for run in runs], ["fillrandom", "waitforcompaction"])
            lines, xplines = (
                size * sum(run["counters"][counter] for run in runs) / runs[0]["written_bytes"]
                for counter, size in (("pm_written_lines", 64), ("pm_written_xplines", 256))
            )
            self.assertGreater(xplines, lines)
            said = rows[f"bytes written per user byte, log, flushes and merges: {name}"]
            self.assertEqual(said, f"{lines:.1f} ({xplines:.1f} in XPLines)")
        page = (self.folder / "out/index.html").read_text(encoding="utf-8")
        self.assertIn("Counted (--count_pm_writes)", page)
        self.assertNotIn("≈", page)

    def test_documents_change_only_when_told_to(self):
        self.assertEqual(self.paper("--only=nvtree-6").returncode, 0)
        self.assertEqual(self.document.read_text(encoding="utf-8"), DOCUMENT)
        self.assertEqual(self.paper("--only=nvtree-6", "--update-docs").returncode, 0)
        text = self.document.read_text(encoding="utf-8")
        self.assertIn("## BraidDB and the figures of its papers", text)
        self.assertIn("\nscripts/bench --paper --scale=0.001 ", text)
        self.assertIn(" --only=nvtree-6\n", text)
        self.assertEqual([row for row in self.rows() if f"| {' | '.join(row)} |" not in text.splitlines()], [])
        (result,) = json.loads((self.folder / "docs/results/paper.json").read_text(encoding="utf-8"))["results"]
        self.assertEqual(result["rows"], self.rows())
        self.assertEqual(self.paper("--only=nvtree-6", "--again", "--update-docs").returncode, 0)
        self.assertEqual(self.document.read_text(encoding="utf-8"), text)
        (self.folder / "docs/results/broken.json").write_text("{}", encoding="utf-8")
        result = self.paper("--only=nvtree-6", "--again", "--update-docs")
        self.assertEqual(result.returncode, 1)
        self.assertIn("broken.json: not a file of results", result.stderr)
        self.assertEqual(self.document.read_text(encoding="utf-8"), text)

    def test_the_page_of_stores_has_all_workloads_with_spread_and_equal_pages(self):
        keys = set(stores_figures.KEYS)
        self.assertEqual(set(stores_figures.presets(f"{BIN}/db_bench")) | {"fills"}, keys, "presets that the page lacks")
        result = self.paper("--stores", "--only=zippydb,ycsb", "--update-docs")
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        (table,) = json.loads((self.folder / "docs/results/stores.json").read_text(encoding="utf-8"))["results"]
        self.assertEqual(tuple(table["head"]), stores_figures.HEAD)
        rows = [dict(zip(table["head"], line)) for line in table["rows"]]
        text = self.document.read_text(encoding="utf-8")
        for line in table["rows"]:
            self.assertIn(f"| {' | '.join(line)} |\n", text)
        mine = [row for row in rows if row["workload"].endswith(", 1 threads") and row["engine"] == "braiddb"]
        self.assertEqual(
            [row["benchmark"] for row in mine],
            ["filluniquerandom", "mixgraph", "ycsb_load", *(f"ycsb_{one}" for one in "abcfd"), "ycsb_load#2", "ycsb_e"],
        )
        documents = [load.load(str(path)).content for path in (self.folder / "out").rglob("*threads.json")]
        self.assertEqual({document["flags"]["huge_pages"] for document in documents}, {"off"})
        there = {one["engine"] for document in documents for one in document["engines"]}
        for row in rows:
            self.assertIn(row["engine"], stores_figures.ENGINES)
            if row["engine"] not in there:
                self.assertEqual(row["k ops/s"], "not measured")
                continue
            self.assertRegex(row["k ops/s"], r"^\d+ \(\d+ to \d+\)$")
            self.assertRegex(row["CPU, µs/op"], r"^\d+\.\d\d \(.*\)$")
            writes = row["benchmark"] not in ("ycsb_c",)
            self.assertRegex(row["settled, k ops/s"], r"^\d+ \(\d+ to \d+\)$" if writes else "^–$")
        self.assertTrue({"rocksdb", "lmdb"} & there or all(row["engine"] != "rocksdb" or row["k ops/s"] == "not measured" for row in rows))

    def test_the_page_of_shapes_has_every_shape_and_file_names_in_both_trees(self):
        said = subprocess.run([f"{BIN}/db_bench", "--key_shape=none"], capture_output=True, text=True, check=False).stderr
        self.assertTrue(said.strip().endswith("is none of " + ", ".join(shapes_figures.SHAPES)), said)
        temporary = self.folder / "temporary"
        temporary.mkdir()
        with unittest.mock.patch.dict(os.environ, TMPDIR=str(temporary)):
            result = self.paper("--shapes", "--only=user,files", "--update-docs")
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        (table,) = json.loads((self.folder / "docs/results/shapes.json").read_text(encoding="utf-8"))["results"]
        self.assertEqual(tuple(table["head"]), shapes_figures.HEAD)
        self.assertNotIn(str(temporary), json.dumps(table))
        rows = [dict(zip(table["head"], line)) for line in table["rows"]]
        whats = [*(f"{what}, k ops/s" for what in shapes_figures.ROWS.values()), shapes_figures.DRAM]
        self.assertEqual([(row["keys"], row["what"]) for row in rows], [(key, what) for key in ("user", "files") for what in whats])
        has_lmdb = rows[0]["LMDB"] != "–"
        for row in rows:
            for engine in shapes_figures.OURS.values():
                self.assertRegex(row[engine], r"^\d+ \(\d+ to \d+\)$")
                self.assertRegex(row[f"{engine} over LMDB"], r"^\d+\.\d\d$|^–$" if has_lmdb else "^–$")
        self.assertEqual(list(temporary.iterdir()), [], "the file of names is left")

    def test_the_page_of_readers_has_both_places(self):
        result = self.paper("--readers", "--only=random16", "--update-docs")
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        (table,) = json.loads((self.folder / "docs/results/readers.json").read_text(encoding="utf-8"))["results"]
        self.assertEqual(tuple(table["head"]), readers_figures.HEAD)
        self.assertEqual([row[1] for row in table["rows"]], [f"{what}, k ops/s" for _, _, what in readers_figures.ROWS])
        for _, what, inside, outside, theirs, of_inside, of_theirs in table["rows"]:
            self.assertRegex(inside, r"^\d+ \(\d+ to \d+\)$", what)
            self.assertRegex(outside, r"^\d+ \(\d+ to \d+\)$", what)
            self.assertRegex(of_inside, r"^\d+\.\d\d$" if inside[0] != "0" else r"^\d+\.\d\d$|^–$", what)
            if theirs == "–":
                self.assertEqual(of_theirs, "–")

    def test_the_page_of_kinds_has_times_memory_and_lines_of_each(self):
        result = self.paper("--kinds", "--only=user", "--update-docs")
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        (table,) = json.loads((self.folder / "docs/results/kinds.json").read_text(encoding="utf-8"))["results"]
        self.assertEqual(tuple(table["head"]), kinds_figures.HEAD)
        rows = {row[1]: row[2:] for row in table["rows"]}
        self.assertEqual(len(rows), len(table["rows"]))
        rates = [f"{what}, k ops/s" for what in kinds_figures.RATES.values()]
        took = [f"{what}, ms" for what in kinds_figures.MILLISECONDS.values()]
        lines = [f"{kinds_figures.RATES[benchmark]}: cache lines written, with the merge" for benchmark in kinds_figures.MERGES]
        memory = [f"{memory} of the last level, bytes a key" for memory in ("DRAM", "persistent memory")]
        self.assertEqual(list(rows), [*rates, *took, *memory, *lines])
        for what, (*ours, lmdb) in rows.items():
            for cell in ours:
                self.assertRegex(cell, r"^\d+\.\d$" if what in lines else r"^[\d.]+ \([\d.]+ to [\d.]+\)$", what)
            if what in (*memory, *lines):
                self.assertEqual(lmdb, "–", what)
        for cell in rows[lines[0]][:-1]:
            self.assertGreater(float(cell), 2, "an entry alone takes two lines")

    def test_a_job_that_fails_is_said_and_leaves_no_result(self):
        self.assertEqual(self.paper("--only=nvtree-6").returncode, 0)
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "db_bench").symlink_to(pathlib.Path(BIN) / "db_bench")
        broken = programs / "index_bench"
        broken.write_text(
            '#!/bin/sh\ncase "$*" in *--num=500*) echo broken on purpose; exit 3;; esac\n' f'exec "{BIN}/index_bench" "$@"\n'
        )
        broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
        result = self.paper("--only=nvtree-6", programs=programs)
        self.assertEqual(result.returncode, 1)
        self.assertIn("500 pairs: ended with 3: broken on purpose", result.stdout)
        self.assertEqual([row[3] for row in self.rows() if "500 pairs" in row[1]], ["not measured"])
        self.assertIn("broken on purpose", (self.folder / "out/index.html").read_text(encoding="utf-8"))

    def test_what_it_does_not_know_it_refuses(self):
        for arguments, message in (
            (["--only=listdb-99"], "there is no figure listdb-99"),
            (["--scale=0"], "--scale is not between"),
            (["/nonexistent"], "'/nonexistent' is not a directory"),
            (["--bin=/nonexistent"], "there is no program /nonexistent/db_bench"),
            (["--again", "--only=nvtree-8"], "there are no results in out"),
            (["--update-docs", "--rounds=1"], "--update-docs needs --rounds=3 or more"),
            (["--rounds=0"], "--rounds is not between"),
            (["--stores", "--only=nvtree-8"], "there is no figure nvtree-8"),
            (["--stores", "--shapes"], "--stores and --shapes exclude each other"),
            (["--readers", "--shapes"], "--shapes and --readers exclude each other"),
            (["--kinds", "--readers"], "--readers and --kinds exclude each other"),
        ):
            with self.subTest(arguments):
                result = self.paper(*arguments)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(message, result.stderr)
                self.assertNotIn("Traceback", result.stderr)

    def test_every_figure_is_there_and_says_what_the_paper_has(self):
        figures = paper_figures.figures(0.01, 2, pathlib.Path(BIN) / "db_bench")
        self.assertEqual(tuple(figure.key for figure in figures), paper_figures.KEYS)
        for figure in figures:
            self.assertEqual(len({job.key for job in figure.jobs}), len(figure.jobs), figure.key)
            self.assertIn("The paper", figure.lead)
            for what, paper, here in figure.rows({}):
                self.assertTrue(what and paper)
                self.assertEqual(here, "not measured", what)


if __name__ == "__main__":
    unittest.main()
