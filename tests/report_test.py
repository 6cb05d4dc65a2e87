#!/usr/bin/env python3
"""tools/report: the page's numbers are those of the files, which way round ratios are, what is a stall, and what bad files give.

Run by ctest with BRAIDDB_DB_BENCH, BRAIDDB_INDEX_BENCH and BRAIDDB_REPORT, the programs.
"""

import html.parser
import itertools
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True
REPORT = os.environ["BRAIDDB_REPORT"]
sys.path.insert(0, os.path.dirname(REPORT))

from benchreport import build, charts, load, model, page, sections, svg  # noqa: E402  after the path is known


class Page(html.parser.HTMLParser):
    """What is on a page: tables by caption, figures' captions, the text, identities, and pictures as trees."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.captions, self.words, self.identities, self.references, self.links = {}, [], "", [], [], []
        self.table, self.into = None, None
        self.pictures = [xml.fromstring(part) for part in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.identities += [attributes["id"]] if "id" in attributes else []
        self.references += attributes.get("aria-labelledby", "").split()
        self.links += [attributes[name] for name in ("href", "src") if name in attributes]
        if tag == "table":
            self.table = []
        elif tag == "tr" and self.table is not None:
            self.table.append([])
        if tag in ("caption", "td", "th", "figcaption"):
            self.into = ""

    def handle_endtag(self, tag):
        if tag == "caption":
            self.tables[self.into] = self.table
        elif tag in ("td", "th"):
            self.table[-1].append(self.into)
        elif tag == "figcaption":
            self.captions.append(self.into)
        elif tag == "table":
            self.table = None
        self.into = None if tag in ("caption", "td", "th", "figcaption") else self.into

    def handle_data(self, data):
        self.words += data
        if self.into is not None:
            self.into += data


def rows_of(page, caption):
    head, *rows = page.tables[caption]
    return [dict(zip(head, row)) for row in rows]


def new_folder():
    return tempfile.TemporaryDirectory(prefix="braiddb-report-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


class Case(unittest.TestCase):
    def setUp(self):
        directory = new_folder()
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)

    def bench(self, name, *arguments):
        path = self.folder / f"{name}.json"
        subprocess.run(
            [os.environ["BRAIDDB_DB_BENCH"], f"--db={self.folder}/db", "--seed=1", f"--json={path}", *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return path

    def report(self, *files):
        """The page, from the program."""
        output = self.folder / "page.html"
        subprocess.run([REPORT, *files, "-o", output], check=True, stdout=subprocess.DEVNULL)
        return Page(output.read_text(encoding="utf-8"))

    def refused(self, *arguments):
        result = subprocess.run(
            [REPORT, *arguments, "-o", self.folder / "none.html"], capture_output=True, text=True, check=False
        )
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertFalse((self.folder / "none.html").exists())
        self.assertNotIn("Traceback", result.stderr)
        return result.stderr


class NumbersAreTheFiles(Case):
    @classmethod
    def setUpClass(cls):
        cls.directory = new_folder()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.path = pathlib.Path(cls.directory.name) / "r.json"
        subprocess.run(
            [
                os.environ["BRAIDDB_DB_BENCH"],
                f"--db={cls.directory.name}/db",
                "--seed=1",
                f"--json={cls.path}",
                "--engines=braiddb,braiddb:nv_tree",
                "--rounds=3",
                "--num=20000",
                "--histogram",
                "--benchmarks=fillrandom,crash,open,readrandom,readwhilewriting,waitforcompaction",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        cls.content = json.loads(cls.path.read_text(encoding="utf-8"))

    def setUp(self):
        super().setUp()
        self.page = self.report(self.path)

    def runs(self, engine, benchmark):
        return [run for run in self.content["runs"] if run["engine"] == engine and run["benchmark"] == benchmark]

    def test_speeds_are_medians_and_ratios_the_first_ones(self):
        rows = rows_of(self.page, "Medians by benchmark and engine")
        self.assertEqual(len(rows), 2 * 5)
        for row in rows:
            runs = self.runs(row["engine"], row["benchmark"])
            self.assertEqual(row["runs"], "3")
            once = row["benchmark"] in ("open", "waitforcompaction")
            figure = (lambda run: run["seconds"] * 1000) if once else (lambda run: run["ops_per_second"])
            median = statistics.median(map(figure, runs))
            self.assertEqual(row["median"], f"{median:.2f} ms" if once else f"{median:.0f} ops/s")
            if row["engine"] == "braiddb":
                self.assertEqual(row["times better the first is"], "–")
                continue
            first = statistics.median(map(figure, self.runs("braiddb", row["benchmark"])))
            self.assertAlmostEqual(
                float(row["times better the first is"]), median / first if once else first / median, delta=0.006
            )

    def test_bars_are_as_long_as_the_medians(self):
        picture = next(
            p for p in self.page.pictures if (p.find("title") is not None and p.find("title").text == "Medians of all rounds")
        )
        widths = {
            rect.find("title").text: float(rect.get("width")) for rect in picture.iter("rect") if rect.find("title") is not None
        }
        ours, theirs = (
            next(w for title, w in widths.items() if title.startswith(f"fillrandom {e}: "))
            for e in ("braiddb", "braiddb:nv_tree")
        )
        medians = [
            statistics.median(run["ops_per_second"] for run in self.runs(e, "fillrandom")) for e in ("braiddb", "braiddb:nv_tree")
        ]
        self.assertAlmostEqual(ours / theirs, medians[0] / medians[1], delta=0.02 * medians[0] / medians[1])

    def test_what_is_said_of_a_bar_has_room_beside_it(self):
        widths = []
        for picture in self.page.pictures:
            whole = float(picture.get("viewBox").split()[2])
            for text in picture.iter("text"):
                if text.get("class") == "value":
                    widths.append(len(text.text))
                    self.assertLessEqual(float(text.get("x")) + 7 * len(text.text), whole, text.text)
        self.assertGreater(max(widths), 28)  # "in the background" is among them

    def test_percentiles_are_those_of_the_run_in_the_middle(self):
        for row in rows_of(self.page, "readrandom: read, microseconds, run in the middle"):
            runs = sorted(self.runs(row["engine"], "readrandom"), key=lambda run: run["ops_per_second"])
            for name, value in runs[1]["latencies_us"]["read"]["percentiles"].items():
                self.assertEqual(row[name], f"{value:.2f}" if value < 1000 else f"{value:.0f}")

    def test_distribution_is_drawn_point_by_point(self):
        measured = sorted(self.runs("braiddb", "readrandom"), key=lambda run: run["ops_per_second"])[1]["latencies_us"]["read"][
            "distribution"
        ]
        picture = next(
            p for p in self.page.pictures if p.find("title") is not None and p.find("title").text == "readrandom: read"
        )
        points = [tuple(map(float, pair.split(","))) for pair in next(picture.iter("polyline")).get("points").split()]
        self.assertEqual(len(points), len(measured))
        self.assertEqual(points, sorted(points, key=lambda point: point[0]))
        self.assertEqual([y for _, y in points], sorted((y for _, y in points), reverse=True))

    def test_ticks_of_a_picture_are_all_different(self):
        shares = []
        for picture in self.page.pictures:
            ticks = [text for text in picture.iter("text") if text.get("class") == "tick"]
            if picture.find("title") is None or not picture.findall("line[@class='grid']"):
                continue  # bars have names there
            for anchor in ("end", "middle"):  # of the y axis, of the x axis
                words = [tick.text for tick in ticks if tick.get("text-anchor") == anchor]
                self.assertEqual(len(words), len(set(words)), f"{picture.find('title').text}: {words}")
            if picture.find("title").text == "readrandom: read":
                shares = [tick.text for tick in ticks if tick.get("text-anchor") == "end"]
        self.assertEqual(shares, ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"])

    def test_recovery_has_what_was_replayed(self):
        for row in rows_of(self.page, "Medians of all rounds"):
            runs = self.runs(row["engine"], "open")
            self.assertEqual(row["open, ms"], f"{statistics.median(run['seconds'] for run in runs) * 1000:.2f}")
            self.assertIn(row["entries replayed"], [f"{run['counters']['replayed_entries']:,}" for run in runs])
            self.assertNotEqual(row["entries replayed"], "0")
        self.assertEqual(self.page.tables["Medians of all rounds"][0][0], "engine")  # which may be long, and is broken there

    def test_bytes_written_for_each_byte_of_the_user(self):
        row = next(
            row
            for row in rows_of(self.page, "Of the run in the middle")
            if (row["benchmark"], row["engine"]) == ("fillrandom", "braiddb")
        )
        run = sorted(self.runs("braiddb", "fillrandom"), key=lambda run: run["ops_per_second"])[1]
        self.assertEqual(row["user bytes"], f"{20000 * 116:,}")
        whole = (run["counters"]["log_bytes"] + 64 * run["counters"]["background_flushed_lines"]) / (20000 * 116)
        self.assertEqual(row["written per user byte"], f"{whole:.2f}")
        self.assertGreater(whole, 1)
        self.assertEqual(row["lines per write"], f"{whole * 116 / 64:.2f}")
        self.assertEqual((row["how"], row["in XPLines"], row["XPLines per write"]), ("estimate", "–", "–"))
        self.assertIn("≈ is an estimate", self.page.words)
        self.assertNotIn("Counted (--count_pm_writes)", self.page.words)

    def test_structure_is_the_last_state(self):
        state = self.runs("braiddb", "waitforcompaction")[0]["state"]
        last = dict(zip(state["names"], state["samples"][-1]))
        rows = {row["what"]: row["how much"] for row in rows_of(self.page, "braiddb: at the end of waitforcompaction")}
        self.assertEqual(rows["last_level_entries"], f"{last['last_level_entries']:,.0f}")
        self.assertEqual(rows["dram_bytes"], svg.size(last["dram_bytes"]))

    def test_page_needs_nothing_else_and_its_pictures_say_what_they_show(self):
        self.assertEqual([link for link in self.page.links if not link.startswith("#")], [])
        self.assertEqual(len(self.page.identities), len(set(self.page.identities)))
        self.assertLessEqual(set(self.page.references), set(self.page.identities))
        self.assertLessEqual({link[1:] for link in self.page.links}, set(self.page.identities))
        shown = [picture for picture in self.page.pictures if picture.get("role") == "img"]
        self.assertGreater(len(shown), 5)
        for picture in shown:
            self.assertTrue(picture.find("title").text and len(picture.find("desc").text) > 10)
            _, _, width, height = map(float, picture.get("viewBox").split())
            for text in picture.iter("text"):
                self.assertTrue(0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height, text.text)


class SeveralFiles(Case):
    def test_threads_are_an_axis(self):
        paths = [
            self.bench(f"t{n}", f"--threads={n}", "--num=5000", "--benchmarks=fillrandom,waitforcompaction") for n in (1, 2, 3)
        ]
        page = self.report(*paths)
        rows = rows_of(page, "fillrandom by threads")
        self.assertEqual([row["threads"] for row in rows], ["1", "2", "3"])
        for row, path in zip(rows, paths):
            self.assertEqual(row["ops/s"], f"{json.loads(path.read_text())['runs'][0]['ops_per_second']:.0f}")
        times = rows_of(page, "waitforcompaction by threads")
        self.assertEqual(
            [row["ms"] for row in times], [f"{json.loads(p.read_text())['runs'][1]['seconds'] * 1000:.2f}" for p in paths]
        )

    def test_other_flags_are_in_the_names(self):
        paths = [
            self.bench(f"v{l1}", f"--l1={l1}", "--num=2000", "--benchmarks=fillrandom") for l1 in ("nv_tree", "braided_skiplist")
        ]
        page = self.report(*paths)
        self.assertIn("braiddb l1=nv_tree", page.words)
        self.assertIn("braiddb l1=braided_skiplist", page.words)

    def test_what_was_counted_is_shown_in_place_of_the_estimate(self):
        options = ["--num=5000", "--key_size=16", "--value_size=100", "--benchmarks=fillrandom,readrandom"]
        path = self.bench("counted", *options, "--count_pm_writes")
        fill, read = json.loads(path.read_text())["runs"]
        counters = fill["counters"]
        self.assertGreaterEqual(counters["pm_fences"], 5000)
        self.assertGreaterEqual(counters["pm_written_lines"], counters["pm_written_xplines"])
        self.assertGreaterEqual(4 * counters["pm_written_xplines"], counters["pm_written_lines"])
        page = self.report(path)
        (row,) = rows_of(page, "Of the run in the middle")
        self.assertEqual(row["how"], "counted")
        self.assertEqual(row["written per user byte"], f"{64 * counters['pm_written_lines'] / (5000 * 116):.2f}")
        self.assertEqual(row["in XPLines"], f"{256 * counters['pm_written_xplines'] / (5000 * 116):.2f}")
        self.assertEqual(row["lines per write"], f"{counters['pm_written_lines'] / 5000:.2f}")
        self.assertEqual(row["XPLines per write"], f"{counters['pm_written_xplines'] / 5000:.2f}")
        self.assertEqual(row["of it in the background"], "–")
        self.assertIn("Counted (--count_pm_writes)", page.words)
        self.assertNotIn("estimate", page.words)
        # Beside one that is not counted each says which it is.
        page = self.report(path, self.bench("timed", *options))
        ways = {row["engine"]: row["how"] for row in rows_of(page, "Of the run in the middle")}
        self.assertEqual(ways, {"braiddb count_pm_writes=true": "counted", "braiddb count_pm_writes=false": "estimate"})

    def test_report_files_and_trees(self):
        csv = self.folder / "progress.csv"
        csv.write_text("secs_elapsed,interval_qps\n1,1000\n2,400\n")
        trees = self.folder / "trees.csv"
        subprocess.run(
            [
                os.environ["BRAIDDB_INDEX_BENCH"],
                "--num=500",
                "--node_bytes=512,1024",
                "--benchmarks=insert",
                f"--csv={trees}",
                f"--path={self.folder}/pm",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        page = self.report(csv, trees)
        self.assertEqual([row["operations"] for row in rows_of(page, "Report files")], ["1000", "400"])
        lines = rows_of(page, "trees: insert, XPLines of 256 bytes per operation")
        first = trees.read_text().splitlines()[1].split(",")
        self.assertIn("trees: insert, lines flushed per operation", page.captions)
        rebuilds = rows_of(page, "trees: insert, rebuilds of inner nodes")
        self.assertEqual({row["tree"] for row in rebuilds}, {"nvtree"})
        self.assertEqual(rebuilds[0]["rebuilds of inner nodes"], f"{float(first[7]):.2f}")
        self.assertIn(f"{float(first[6]):.2f}", [row.get("XPLines of 256 bytes per operation") for row in lines])


def run_of(rates, step=0.1):
    """A run whose progress has these rates."""
    points, done = [[0, 0]], 0
    for i, rate in enumerate(rates, start=1):
        done += rate * step
        points.append([i * step, done])
    return model.Run(
        "x",
        "fill",
        {},
        None,
        {
            "progress": points,
            "seconds": len(rates) * step,
            "operations": done,
            "ops_per_second": done / (len(rates) * step),
            "round": 0,
        },
    )


class Model(unittest.TestCase):
    def test_stalls_are_what_is_below_a_tenth_of_the_median(self):
        rates = model.intervals(run_of([1000, 1000, 99, 0, 1000, 101, 1000, 50, 1000]))
        self.assertEqual([(round(a, 3), round(b, 3)) for a, b in model.stalls(rates)], [(0.2, 0.4), (0.7, 0.8)])
        self.assertEqual(model.stalls(model.intervals(run_of([1000] * 9))), [])
        self.assertEqual(model.stalls(model.intervals(run_of([1000] * 9 + [0]))), [])  # threads that end

    def test_who_was_too_fast_for_a_curve_is_named(self):
        runs = [run_of([1000] * 9), run_of([1000] * 3)]
        for run, label in zip(runs, ("slow", "quick")):
            run.label = label
        inside = sections.over_time(runs, sections.Colours()).inside
        self.assertEqual(len(inside), 1)
        self.assertIn("<figcaption>fill: throughput, without quick: fewer than 4 samples</figcaption>", inside[0].body)
        self.assertIsNone(sections.over_time(runs[1:], sections.Colours()))

    def test_ratios_are_put_into_words_above_one(self):
        said = [sections._first_is(ratio) for ratio in (None, 1, 2.5, 0.3125, 0.01)]
        self.assertEqual(said, ["", " (1st 1.00 × better)", " (1st 2.50 × better)", " (1st 3.20 × worse)", " (1st 100 × worse)"])

    def test_stalls_are_on_the_page(self):
        figure = sections._throughput("fill", {"x": run_of([1000, 0, 0, 1000, 1000, 1000])}, sections.Colours())
        self.assertIn("next to nothing was done from 0.10 s to 0.30 s", figure)

    def test_what_a_sine_asked_for_is_in_operations(self):
        run = run_of([1000] * 10)
        run.content["demanded_rate"] = [[0, 500], [0.4, 700]]
        self.assertEqual(sections._asked_for(run), [(0, 500), (0.4, 500), (0.4, 700), (1.0, 700)])
        del run.content["demanded_rate"]
        run.content["demanded_write_rate"] = [[0, 1160]]
        run.flags.update(key_size="16", value_size="100")
        self.assertEqual(sections._asked_for(run), [(0, 10), (1.0, 10)])

    def test_short_end_goes_to_the_interval_before(self):
        run = run_of([1000, 1000])
        run.content["progress"].append([0.201, 200 + 50])
        rates = model.intervals(run)
        self.assertEqual(len(rates), 2)
        self.assertAlmostEqual(rates[-1][2], 150 / 0.101)

    def test_ratios_say_how_many_times_better_the_first_is(self):
        self.assertEqual(model.times_better(2000, 1000, True), 2)
        self.assertEqual(model.times_better(10, 20, False), 2)
        self.assertEqual(model.times_better(1000, 2000, True), 0.5)
        self.assertIsNone(model.times_better(0, 1, True))

    def test_bytes_written_are_of_lines_and_of_system_calls(self):
        run = run_of([1000] * 3)
        self.assertIsNone(model.written_per_user_byte(run))
        run.content.update(
            written_bytes=1000, counters={"log_bytes": 1500, "background_flushed_lines": 10, "file_written_bytes": 7}
        )
        self.assertEqual(model.written_per_user_byte(run), model.Written(2.14, "estimate", background=0.64))
        run.content["counters"].update(writes=10, pm_written_lines=30, pm_written_xplines=20, pm_fences=10)
        self.assertEqual(
            model.written_per_user_byte(run),
            model.Written(1.92, "counted", xplines=5.12, lines_per_write=3, xplines_per_write=2),
        )
        run.content["counters"] = {"file_written_bytes": 2500}
        self.assertEqual(model.written_per_user_byte(run), model.Written(2.5, "system calls"))
        run.content["counters"] = {"file_written_bytes": 400}  # a store that writes by a mapped file
        self.assertIsNone(model.written_per_user_byte(run))

    def test_numbers_are_read_easily(self):
        self.assertEqual(
            [svg.short(x) for x in (0, 0.25, 999.9, 1234, 999960, 1.29e6)], ["0", "0.25", "1 k", "1.23 k", "1 M", "1.29 M"]
        )
        self.assertEqual([svg.size(x) for x in (10, 2048, 3 << 20)], ["10 B", "2 KiB", "3 MiB"])
        self.assertEqual([svg.micros(x) for x in (0.25, 12.34, 4000)], ["250 ns", "12.3 µs", "4 ms"])
        self.assertEqual(svg.Linear(0, 95 << 20, 0, 1, binary=True).ticks, [i * 20 << 20 for i in range(6)])
        self.assertEqual(svg.Linear(0, 1, 0, 1, whole=True).ticks, [0, 1])

    def test_text_from_files_is_no_markup(self):
        document = {
            "environment": {"cpu": "<script>", "warnings": "<b>"},
            "command": ["a&b"],
            "engines": [{"engine": "<i>"}],
            "flags": {},
            "runs": [
                {
                    "engine": "<i>",
                    "benchmark": "<u>",
                    "round": 0,
                    "threads": 1,
                    "operations": 5,
                    "seconds": 1,
                    "ops_per_second": 5,
                }
            ],
        }
        page = build.build([load.Document("<p>", "<p>", document)], "<title>")
        for tag in ("<script>", "<b>", "<i>", "<u>", "<p></p>", "a&b"):
            self.assertNotIn(tag, page.split("</style>")[1])
        self.assertEqual(Page(page).tables["Medians by benchmark and engine"][1][0], "<u>")


# How people with one kind of cones missing see linear RGB: Machado, Oliveira, Fernandes, "A physiologically-based model for
# simulation of color vision deficiency", 2009, severity 1.
VISION = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]


def oklab(rgb):
    """Ottosson's space, in which distances are as they are seen."""
    cones = [[0.41222147, 0.53633254, 0.05144599], [0.21190350, 0.68069955, 0.10739696], [0.08830246, 0.28171884, 0.62997870]]
    roots = [max(sum(w * x for w, x in zip(row, rgb)), 0) ** (1 / 3) for row in cones]
    lab = [[0.21045426, 0.79361779, -0.00407205], [1.97799850, -2.42859221, 0.45059371], [0.02590404, 0.78277177, -0.80867577]]
    return [sum(w * x for w, x in zip(row, roots)) for row in lab]


class Labels(unittest.TestCase):
    def test_long_names_of_bars_are_cut_to_their_room(self):
        name = "dram-checkpoint:1000000 benchmark_write_rate_limit=0 0123456789"
        drawing = charts.bars("Bars", [("group", [(name, [(1, 0)], "1")])])
        x, cut = re.search(r'<text x="([\d.]+)"[^>]*class="tick"[^>]*>([^<]*…[^<]*)<', drawing).groups()
        self.assertLessEqual(7.4 * len(cut), float(x))
        self.assertIn(name, drawing)  # where the pointer rests


class Colours(unittest.TestCase):
    def test_no_two_curves_of_a_picture_look_alike(self):
        looks = [(svg.colour(i), svg.dash(i)) for i in range(4 * svg.SERIES_COLOURS)]
        self.assertEqual(len(looks), len(set(looks)))
        self.assertGreaterEqual(len({colour for colour, _ in looks[:10]}), 10)

    def test_all_can_be_told_apart_and_seen(self):
        light, dark = page.CSS.split("@media(prefers-color-scheme:dark)")
        for mode in (light, dark):
            colours = dict(re.findall(r"--(c\d|card):(#[0-9a-f]{3,6})", mode.split("}")[0]))
            card = colours.pop("card")
            card = card if len(card) == 7 else "#" + "".join(2 * x for x in card[1:])
            self.assertEqual(len(colours), svg.SERIES_COLOURS)
            brightness = {
                name: sum(w * x for w, x in zip((0.2126, 0.7152, 0.0722), linear(c)))
                for name, c in (*colours.items(), ("card", card))
            }
            for name in colours:
                ends = sorted((brightness[name] + 0.05, brightness["card"] + 0.05))
                self.assertGreaterEqual(ends[1] / ends[0], 3, f"contrast of {colours[name]}")  # WCAG 2, graphical objects
            for kind, matrix in VISION.items():
                seen = {n: oklab([sum(w * x for w, x in zip(row, linear(c))) for row in matrix]) for n, c in colours.items()}
                for (one, a), (other, b) in itertools.combinations(seen.items(), 2):
                    self.assertGreater(100 * math.dist(a, b), 8, f"{kind}: {colours[one]} and {colours[other]}")


class BadFiles(Case):
    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def test_each_says_which_file_and_why(self):
        good = {"program": "db_bench", "format": 1, "environment": {}, "flags": {}, "engines": [], "command": [], "runs": []}
        run = {"engine": "e", "benchmark": "b", "round": 0, "threads": 1, "operations": 1, "seconds": 1, "ops_per_second": 1}
        cases = [
            ("empty", "", "is empty"),
            ("broken.json", "{", "not JSON"),
            ("list.json", "[1]", "neither JSON nor a CSV"),
            ("other.json", '{"program": "fio"}', "not a result of db_bench"),
            ("new.json", json.dumps({**good, "format": 2}), "format 2"),
            ("part.json", json.dumps({**good, "runs": {}}), "runs is missing or of another type"),
            ("run.json", json.dumps({**good, "runs": [{**run, "seconds": "1"}]}), "runs[0].seconds is not a number"),
            ("less.json", json.dumps({**good, "runs": [{**run, "operations": -1}]}), "runs[0].operations"),
            ("nan.json", json.dumps({**good, "runs": [{**run, "ops_per_second": float("nan")}]}), "runs[0].ops_per_second"),
            ("rows.json", json.dumps({**good, "runs": [{**run, "progress": [[1]]}]}), "runs[0].progress has a row"),
            (
                "state.json",
                json.dumps({**good, "runs": [{**run, "state": {"names": ["seconds"], "samples": [[1, 2]]}}]}),
                "state.samples",
            ),
            ("words.csv", "secs_elapsed,interval_qps\n1,many\n", "words.csv:2: not a number"),
            ("short.csv", "secs_elapsed,interval_qps\n1\n", "short.csv:2: 1 columns"),
            ("foreign.csv", "a,b\n1,2\n", "neither JSON nor a CSV"),
        ]
        for name, text, message in cases:
            with self.subTest(name):
                path = self.write(name, text)
                said = self.refused(path)
                self.assertIn(path, said)
                self.assertIn(message, said)
        self.assertIn("No such file", self.refused("/nonexistent.json"))
        good_path = self.write("good.json", json.dumps({**good, "runs": [run]}))
        result = subprocess.run([REPORT, good_path, "-o", "/nonexistent/page.html"], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("/nonexistent/page.html", result.stderr)


if __name__ == "__main__":
    unittest.main()
