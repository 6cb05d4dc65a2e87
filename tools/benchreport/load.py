"""Files that a page is made of: results of db_bench --json, its --report_file, and index_bench --csv."""

import csv
import json
import math
import os
from dataclasses import dataclass, field

REPORT_FILE = ["secs_elapsed", "interval_qps"]
INDEX_BENCH = [
    "tree",
    "node_bytes",
    "benchmark",
    "ops_per_second",
    "lines",
    "fences",
    "xplines",
    "rebuilds",
    "rebuild_seconds",
    "dram_bytes",
]
RUN_NUMBERS = ("round", "threads", "operations", "seconds", "ops_per_second")


class InputError(Exception):
    """A file that no page can be made of; the text says which and why."""


@dataclass
class Document:
    """One result of db_bench --json, whose parts are known to be there."""

    path: str
    name: str  # for legends: the file's, without folder and ending
    content: dict


@dataclass
class Curve:
    """One --report_file: operations of each interval, by the seconds at its end."""

    name: str
    points: list = field(default_factory=list)


@dataclass
class TreeTable:
    """One index_bench --csv: a dict for each line, numbers as numbers."""

    name: str
    rows: list = field(default_factory=list)


def _require(holds, path, what):
    if not holds:
        raise InputError(f"{path}: {what}")


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _check_rows(rows, width, path, what):
    _require(isinstance(rows, list), path, f"{what} is not a list")
    for row in rows:
        _require(
            isinstance(row, list) and len(row) == width and all(_is_number(x) for x in row),
            path,
            f"{what} has a row that is not {width} numbers",
        )


def _check_run(run, index, path):
    where = f"runs[{index}]"
    _require(isinstance(run, dict), path, f"{where} is not an object")
    for name in ("engine", "benchmark"):
        _require(isinstance(run.get(name), str), path, f"{where} has no {name}")
    for name in RUN_NUMBERS:
        _require(_is_number(run.get(name)) and run[name] >= 0, path, f"{where}.{name} is not a number from 0 on")
    for name in ("latencies_us", "counters", "state"):
        _require(isinstance(run.get(name, {}), dict), path, f"{where}.{name} is not an object")
    for kind, latencies in run.get("latencies_us", {}).items():
        _require(
            isinstance(latencies, dict) and isinstance(latencies.get("percentiles"), dict),
            path,
            f"{where}.latencies_us.{kind} has no percentiles",
        )
        _require(
            all(_is_number(value) for value in latencies["percentiles"].values()),
            path,
            f"{where}.latencies_us.{kind} has a percentile that is no number",
        )
        _check_rows(latencies.get("distribution"), 2, path, f"{where}.latencies_us.{kind}.distribution")
    _require(
        all(_is_number(value) for value in run.get("counters", {}).values()), path, f"{where}.counters has what is no number"
    )
    for name in ("progress", "demanded_rate", "demanded_write_rate"):
        _check_rows(run.get(name, []), 2, path, f"{where}.{name}")
    if run.get("state"):
        names = run["state"].get("names")
        _require(isinstance(names, list) and names[:1] == ["seconds"], path, f"{where}.state has no names")
        _check_rows(run["state"].get("samples"), len(names), path, f"{where}.state.samples")


def _name_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def _load_json(path, text):
    try:
        content = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    _require(isinstance(content, dict) and content.get("program") == "db_bench", path, "not a result of db_bench --json")
    _require(
        content.get("format") == 1, path, f"format {content.get('format')!r} of db_bench --json, of which only 1 is known here"
    )
    for name, kind in (("environment", dict), ("flags", dict), ("engines", list), ("command", list), ("runs", list)):
        _require(isinstance(content.get(name), kind), path, f"{name} is missing or of another type than it should be")
    for engine in content["engines"]:
        _require(isinstance(engine, dict) and isinstance(engine.get("engine"), str), path, "engines has one without a name")
    for index, run in enumerate(content["runs"]):
        _check_run(run, index, path)
    return Document(path, _name_of(path), content)


def _numbers(path, number, words):
    try:
        values = [float(word) for word in words]
    except ValueError as error:
        raise InputError(f"{path}:{number}: not a number: {error}") from error
    _require(all(math.isfinite(value) for value in values), f"{path}:{number}", "not a finite number")
    return values


def _load_csv(path, text):
    lines = list(csv.reader(text.splitlines()))
    head, body = lines[0], [(i, line) for i, line in enumerate(lines[1:], start=2) if line]
    for number, line in body:
        _require(len(line) == len(head), f"{path}:{number}", f"{len(line)} columns where the head has {len(head)}")
    if head == REPORT_FILE:
        return Curve(_name_of(path), [_numbers(path, number, line) for number, line in body])
    if head == INDEX_BENCH:
        table = TreeTable(_name_of(path))
        for number, line in body:
            row = dict(zip(head, line))
            numeric = [name for name in head if name not in ("tree", "benchmark")]
            row.update(zip(numeric, _numbers(path, number, [row[name] for name in numeric])))
            table.rows.append(row)
        return table
    raise InputError(f"{path}: neither JSON nor a CSV file that db_bench or index_bench writes")


def load(path):
    """A Document, Curve or TreeTable, by what is in the file. Raises InputError."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from error
    _require(text.strip() != "", path, "the file is empty")
    return _load_json(path, text) if text.lstrip().startswith("{") else _load_csv(path, text)
