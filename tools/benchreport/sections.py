"""Which figures a page has, and what is in them. Each function gives a section, or None if the runs have nothing for it."""

from . import charts, lsm_picture, model, page, svg

KINDS_OF_MEMORY = (
    ("process_dram_bytes", "DRAM of the process", "Resident memory without mapped files, db_bench's own included."),
    ("file_bytes", "persistent memory", "What the database's files take."),
)
LEAST_INTERVALS = 4


class Colours:
    """The same label has the same colour on the whole page."""

    def __init__(self):
        self.known = {}

    def __call__(self, label):
        return self.known.setdefault(label, len(self.known))


def _benchmarks(runs):
    return model.ordered(run.benchmark for run in runs)


def _labels(runs):
    return model.ordered(run.label for run in runs)


def _by_label(runs):
    """{label: its runs}"""
    return {label: model.of(runs, label=label) for label in _labels(runs)}


def _timed(runs):
    return [run for run in runs if not run.is_done_once()]


def _rate(runs):
    return model.median([run.rate for run in runs])


def _milliseconds(runs):
    return model.median([run["seconds"] for run in runs]) * 1000


# ---- Speeds.


def _times(ratio):
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def _first_is(ratio):
    """In brackets behind a number; nothing if there is no ratio."""
    if not ratio:
        return ""
    return f" (1st {ratio:.2f} × better)" if ratio >= 1 else f" (1st {1 / ratio:.{2 if ratio > 0.1 else 0}f} × worse)"


def _settled(runs):
    """The rate with all merges done; a dash where that was not measured (--settle)."""
    rates = [run.content["settled_ops_per_second"] for run in runs if "settled_ops_per_second" in run.content]
    return f"{model.median(rates):.0f} ops/s" if rates else "–"


def _cpu(runs):
    """CPU time of the process for each operation, with that of the merges where these were waited for."""
    names = ("settled_cpu_micros_per_op", "cpu_micros_per_op")
    costs = [next((run.content[name] for name in names if name in run.content), None) for run in runs]
    known = [cost for cost in costs if cost is not None]
    return f"{model.median(known):.3f}" if known else "–"


def _speeds_of(title, runs, colours):
    """A group of bars, and rows of the table."""
    once = all(run.is_done_once() for run in runs)
    figure, text = (_milliseconds, lambda v: f"{v:.2f} ms") if once else (_rate, lambda v: f"{svg.short(v)}/s")
    group, rows, first = [], [], None
    for label, theirs in _by_label(runs).items():
        value = figure(theirs)
        ratio = model.times_better(first, value, not once) if first is not None else None
        group.append((label, [(value, colours(label))], text(value) + _first_is(ratio)))
        number = f"{value:.2f} ms" if once else f"{value:.0f} ops/s"
        costs = [_settled(theirs), _cpu(theirs)]
        rows.append([title, label, number, *costs, str(len(theirs)), _times(ratio) if ratio else "–"])
        first = value if first is None else first
    return (f"{title}{', time' if once else ''}", group), rows


def _one_engine(runs, colours):
    """Groups and rows where nothing is compared: all benchmarks on one scale."""
    by_rate, by_time, rows = [], [], []
    for benchmark in _benchmarks(runs):
        (_, bar), more = _speeds_of(benchmark, model.of(runs, benchmark=benchmark), colours)
        (by_time if more[0][2].endswith(" ms") else by_rate).append((benchmark, *bar[0][1:]))
        rows += more
    return [(name, bars) for name, bars in (("operations a second", by_rate), ("time", by_time)) if bars], rows


def _compared(runs, axis, colours):
    groups, rows = [], []
    for benchmark in _benchmarks(runs):
        here = model.of(runs, benchmark=benchmark)
        for value in model.ordered(run.flags.get(axis) for run in here):
            alike = [run for run in here if run.flags.get(axis) == value]
            group, more = _speeds_of(f"{benchmark}, {axis}={value}" if axis else benchmark, alike, colours)
            groups.append(group)
            rows += more
    return groups, rows


def speeds(runs, axis, colours):
    """Bars of all benchmarks by engine, with how many times better the first is. Runs that differ in the flag `axis` are not
    compared: that is what scaling() is for, and all that it leaves to be shown of one engine."""
    compared = len(_labels(runs)) > 1
    if not runs or (axis and not compared):
        return None
    groups, rows = _compared(runs, axis, colours) if compared else _one_engine(runs, colours)
    if not groups:
        return None
    halves = [groups[: -(-len(groups) // 2)], groups[-(-len(groups) // 2) :]] if len(groups) > 3 else [groups]
    note = "Each group has a scale of its own." + (
        f" In brackets: how many times better or worse {_labels(runs)[0]} is." if compared else ""
    )
    figures = [
        charts.bars(f"Medians of all rounds{', continued' if i else ''}", half, note=note) for i, half in enumerate(halves)
    ]
    head = ["benchmark", "engine", "median", "settled", "CPU µs/op", "runs", "times better the first is"]
    return page.Section(
        "speeds",
        "Speeds",
        page.grid(figures) + charts.numbers(head, rows, "Medians by benchmark and engine"),
        "Operations a second, more is better; of what is done once, its time, less is better.",
    )


def scaling(runs, flag, colours):
    """Operations a second, or the time of what is done once, by a flag that differs between files, as threads."""
    figures = []
    for benchmark in _benchmarks(runs):
        here = model.of(runs, benchmark=benchmark)
        once = all(run.is_done_once() for run in here)
        figure, name = (_milliseconds, "milliseconds") if once else (_rate, "operations a second")
        series, rows = [], []
        for label, theirs in _by_label(here).items():
            values = sorted({float(run.flags[flag]) for run in theirs})
            points = [(value, figure([run for run in theirs if float(run.flags[flag]) == value])) for value in values]
            series.append(charts.Series(label, points, colours(label), marked=True))
            rows += [[label, svg.short(x), f"{y:.2f}" if once else f"{y:.0f}"] for x, y in points]
        if max(len(one.points) for one in series) < 2:
            continue
        below = charts.numbers(["engine", flag, "ms" if once else "ops/s"], rows, f"{benchmark} by {flag}")
        figures.append(charts.lines(benchmark, series, f"--{flag}", name, x_scale="steps", below=below))
    if not figures:
        return None
    return page.Section("scaling", f"By --{flag}", page.grid(figures), "Values of the axis are at equal distances.")


# ---- Over time.


def _asked_for(run):
    """Corners of the rate that a sine asked for, in operations a second; none if there was none."""
    demanded = run.content.get("demanded_rate", [])
    if not demanded:
        update = sum(float(run.flags.get(name, 0)) for name in ("key_size", "value_size")) or 1
        demanded = [[at, rate / update] for at, rate in run.content.get("demanded_write_rate", [])]
    ends = [at for at, _ in demanded[1:]] + [run["seconds"]]
    return [corner for (at, rate), end in zip(demanded, ends) for corner in ((at, rate), (end, rate))]


def _are_alike(steps, others):
    """Of one sine, whose rates were looked at a moment earlier or later."""
    return all(abs(a - b) <= 0.02 * max(a, b) for (_, a), (_, b) in zip(steps, others))


def _throughput(benchmark, chosen, colours, short=()):
    series, rows, asked = [], [], []
    for label, run in chosen.items():
        rates = model.intervals(run)
        stalls = model.stalls(rates)
        points = model.thin([((begin + end) / 2, rate) for begin, end, rate in rates])
        series.append(charts.Series(label, points, colours(label), stalls))
        longest = max((end - begin for begin, end in stalls), default=0)
        middle = model.median([rate for _, _, rate in rates])
        rows.append(
            [
                label,
                f"{min(r for _, _, r in rates):.0f}",
                f"{middle:.0f}",
                f"{max(r for _, _, r in rates):.0f}",
                str(len(stalls)),
                f"{sum(end - begin for begin, end in stalls):.2f}",
                f"{longest:.2f}",
            ]
        )
        steps = _asked_for(run)
        if steps and not any(_are_alike(steps, others) for others in asked):
            asked.append(steps)  # once for engines that were asked for the same
            series.append(charts.Series(f"{label}: asked for", steps, colours(f"{label}: asked for")))
    says = "; ".join(f"{row[0]}: {svg.short(float(row[2]))} a second in the middle, {row[4]} stalls" for row in rows)
    head = ["engine", "slowest, ops/s", "median", "fastest", "stalls", "s in stalls", "longest, s"]
    stalled = any(one.bands for one in series)
    note = "Shaded: less than a tenth of the median rate." if stalled else "No interval had less than a tenth of the median rate."
    left_out = f", without {', '.join(short)}: fewer than {LEAST_INTERVALS} samples" if short else ""
    return charts.lines(
        f"{benchmark}: throughput{left_out}",
        series,
        "seconds",
        "operations a second",
        below=charts.numbers(head, rows, f"{benchmark}: tenths of a second"),
        note=note,
        says=says,
    )


def _column_chart(benchmark, chosen, name, title, note, colours):
    series, rows = [], []
    in_bytes = name.endswith("bytes")
    text = svg.size if in_bytes else svg.short
    for label, run in chosen.items():
        points = model.column(run, name)
        if not points or not any(value for _, value in points):
            continue
        series.append(charts.Series(label, model.thin(points), colours(label)))
        rows.append([label, *(text(value) for value in (points[0][1], max(v for _, v in points), points[-1][1]))])
    if not series:
        return None
    return charts.lines(
        f"{benchmark}: {title}",
        series,
        "seconds",
        "size" if in_bytes else "tables",
        y_text=text,
        y_scale="bytes" if in_bytes else "counts",
        note=note,
        below=charts.numbers(["engine", "at the start", "most", "at the end"], rows, title),
    )


def over_time(runs, colours):
    """Throughput with stalls, memory, L0: of the run in the middle of each engine."""
    parts = []
    for benchmark in _benchmarks(_timed(runs)):
        chosen = {label: model.median_run(theirs) for label, theirs in _by_label(model.of(runs, benchmark=benchmark)).items()}
        short = [label for label, run in chosen.items() if len(model.intervals(run)) < LEAST_INTERVALS]
        chosen = {label: run for label, run in chosen.items() if label not in short}
        if not chosen:
            continue
        figures = [_throughput(benchmark, chosen, colours, short)]
        figures += [_column_chart(benchmark, chosen, name, title, note, colours) for name, title, note in KINDS_OF_MEMORY]
        figures.append(_column_chart(benchmark, chosen, "l0_tables", "L0 tables", "Tables that wait for their merge.", colours))
        parts.append(page.Section(str(len(parts)), benchmark, page.grid([one for one in figures if one])))
    if not parts:
        return None
    lead = f"Of each engine the run in the middle; those with fewer than {LEAST_INTERVALS} samples have no curve."
    return page.Section("time", "Over time", "", lead, parts)


def curves(reports, colours):
    """Files of --report_file."""
    if not reports:
        return None
    series = [charts.Series(one.name, model.thin(list(map(tuple, one.points))), colours(one.name)) for one in reports]
    rows = [[one.name, svg.short(seconds), f"{count:.0f}"] for one in reports for seconds, count in one.points]
    chart = charts.lines(
        "Operations of each interval",
        series,
        "seconds",
        "operations",
        below=charts.numbers(["file", "seconds", "operations"], rows, "Report files"),
    )
    return page.Section(
        "report-files", "Report files", page.grid([chart]), "As db_bench --report_file wrote them, all benchmarks of a run."
    )


# ---- Latencies.

PERCENTILES = ("P50", "P75", "P90", "P95", "P99", "P99.9", "P99.99")


def _micros(latency):
    """Microseconds for a table: columns are as wide as what is in them, and all are to fit beside each other."""
    return f"{latency:.2f}" if latency < 1000 else f"{latency:.0f}"


def _percent(share):
    return f"{100 * share:.5f}".rstrip("0").rstrip(".") + " %"


def latencies(runs, colours):
    """The distribution of each kind of operation, and its percentiles."""
    figures = []
    for benchmark in _benchmarks(runs):
        here = model.of(runs, benchmark=benchmark)
        for kind in model.ordered(kind for run in here for kind in run.content.get("latencies_us", {})):
            series, rows = [], []
            for label, theirs in _by_label(here).items():
                with_it = [run for run in theirs if kind in run.content.get("latencies_us", {})]
                if not with_it:
                    continue
                measured = model.median_run(with_it)["latencies_us"][kind]
                points = [(max(latency, 1e-3), share) for latency, share in measured["distribution"]]
                series.append(charts.Series(label, points, colours(label)))
                rows.append(
                    [
                        label,
                        *(_micros(measured["percentiles"][name]) for name in PERCENTILES if name in measured["percentiles"]),
                        _micros(measured.get("max", 0)),
                    ]
                )
            says = "; ".join(
                f"{row[0]}: half took at most {row[1]} microseconds, 99.9 % at most {row[6]}" for row in rows if len(row) > 6
            )
            head = ["engine", *PERCENTILES, "max"]
            figures.append(
                charts.lines(
                    f"{benchmark}: {kind}",
                    series,
                    "latency",
                    "share that took at most that",
                    x_scale="log",
                    y_scale="nines",
                    x_text=svg.micros,
                    y_text=_percent,
                    says=says,
                    below=charts.table(head, rows, f"{benchmark}: {kind}, microseconds, run in the middle"),
                )
            )
    if not figures:
        return None
    return page.Section("latencies", "Latencies", page.grid(figures), "The share axis gives each nine the same room.")


# ---- Recovery, bytes, state.


def _base(benchmark):
    return benchmark.split("#")[0]


def recovery(runs, colours):
    """What the benchmark open took."""
    opens = [run for run in runs if _base(run.benchmark) == "open"]
    if not opens:
        return None
    groups, rows = [], []
    for benchmark in _benchmarks(opens):
        group = []
        for label, theirs in _by_label(model.of(opens, benchmark=benchmark)).items():
            value = _milliseconds(theirs)
            counters = model.median_run(theirs).content.get("counters", {})
            group.append((label, [(value, colours(label))], f"{value:.1f} ms"))
            rows.append(
                [
                    label,
                    benchmark,
                    f"{value:.2f}",
                    f"{counters.get('recovery_us', 0) / 1000:.2f}" if "recovery_us" in counters else "–",
                    f"{counters['replayed_entries']:,}" if "replayed_entries" in counters else "–",
                ]
            )
        groups.append((benchmark, group))
    # The first column has words that are broken where they are long.
    head = ["engine", "benchmark", "open, ms", "of it recovery, ms", "entries replayed"]
    chart = charts.bars("Time of an open", groups, one_scale=True, below=charts.table(head, rows, "Medians of all rounds"))
    return page.Section(
        "recovery", "Recovery", page.grid([chart]), "Behind a crash an open has to recover; after a close it has not."
    )


def _per_byte(value):
    return "–" if value is None else f"{value:.2f}"


def written(runs, colours):
    """Bytes written for each byte of the user's."""
    groups, rows, ways = [], [], set()
    for benchmark in _benchmarks(runs):
        group = []
        for label, theirs in _by_label(model.of(runs, benchmark=benchmark)).items():
            run = model.median_run(theirs)
            if not run.content.get("written_bytes"):
                continue
            found = model.written_per_user_byte(run)
            if found is None:
                rows.append([benchmark, label, f"{run['written_bytes']:,}", "not known", *["–"] * 5])
                continue
            ways.add(found.how)
            background = found.background or 0
            parts = [(found.whole - background, colours(label)), (background, 5)]
            says = f"{found.whole:.2f}"
            if found.how == model.COUNTED:
                says += f"  ({found.xplines:.2f} in XPLines)"
            elif found.how == model.ESTIMATED:
                says = f"≈ {says}  ({background:.2f} in the background)"
            group.append((label, parts if background else parts[:1], says))
            rows.append(
                [
                    benchmark,
                    label,
                    f"{run['written_bytes']:,}",
                    f"{found.whole:.2f}",
                    _per_byte(found.xplines),
                    _per_byte(found.background),
                    _per_byte(found.lines_per_write),
                    _per_byte(found.xplines_per_write),
                    found.how,
                ]
            )
        if group:
            groups.append((benchmark, group))
    if not groups:
        return None
    head = [
        "benchmark",
        "engine",
        "user bytes",
        "written per user byte",
        "in XPLines",
        "of it in the background",
        "lines per write",
        "XPLines per write",
        "how",
    ]
    notes = {
        model.COUNTED: "Counted (--count_pm_writes): each cache line that any thread flushed, 64 bytes, and in brackets each "
        "XPLine, 256 bytes, once between two fences of a thread.",
        model.ESTIMATED: "≈ is an estimate: log space of entries, and 64 bytes for each cache line that flushes and merges wrote "
        "meanwhile, grey.",
        model.GIVEN: "System calls: bytes given to them; stores into a mapped file, as LMDB's, cannot be counted so.",
    }
    chart = charts.bars(
        "Bytes written for each byte of keys and values",
        groups,
        one_scale=True,
        note=" ".join(note for way, note in notes.items() if way in ways),
        below=charts.numbers(head, rows, "Of the run in the middle"),
    )
    return page.Section("written", "Bytes written", page.grid([chart]))


def structure(runs):
    """Pictures of BraidDB's levels: with most tables in L0, and at the end."""
    figures = []
    for label, theirs in _by_label([run for run in runs if model.column(run, "l0_tables")]).items():
        moments = [(run, state) for run in theirs if run["round"] == theirs[0]["round"] for state in model.states(run)]
        fullest_run, fullest = max(moments, key=lambda moment: moment[1]["l0_tables"])
        last_run, last = moments[-1]
        if fullest["l0_tables"] > last["l0_tables"]:
            figures.append(
                lsm_picture.picture(
                    f"{label}: {fullest_run.benchmark}, with most tables in L0 (second {fullest['seconds']:.1f})", fullest
                )
            )
        figures.append(lsm_picture.picture(f"{label}: at the end of {last_run.benchmark}", last))
    if not figures:
        return None
    return page.Section("structure", "What there is", page.grid(figures), "Levels and memory of the first round, at two moments.")


# ---- NV-Tree alone.


def _tree_bars(tables, colours):
    """Of tables with one size of nodes."""
    groups = []
    for one in tables:
        for benchmark in model.ordered(row["benchmark"] for row in one.rows):
            rows = [row for row in one.rows if row["benchmark"] == benchmark]
            first = rows[0]["ops_per_second"]
            group = []
            for row in rows:
                ratio = model.times_better(first, row["ops_per_second"], True) if row is not rows[0] else None
                text = f"{svg.short(row['ops_per_second'])}/s" + _first_is(ratio)
                group.append((row["tree"], [(row["ops_per_second"], colours(row["tree"]))], text))
            groups.append((f"{one.name}: {benchmark}", group))
    return [charts.bars("Operations a second", groups, note="Each group has a scale of its own.")] if groups else []


def trees(tables, colours):
    """Tables of index_bench: curves by size of nodes, or bars where there is one size."""
    single = [one for one in tables if len({row["node_bytes"] for row in one.rows}) == 1]
    figures = _tree_bars(single, colours)
    for one in tables:
        if one not in single:
            figures += _tree_curves(one, colours)
    if not figures:
        return None
    return page.Section("trees", "NV-Tree alone", page.grid(figures), "index_bench, one thread, without a database.")


TREE_COLUMNS = (
    ("ops_per_second", "operations a second"),
    ("lines", "lines flushed per operation"),
    ("xplines", "XPLines of 256 bytes per operation"),
)
REBUILD_COLUMNS = (
    ("rebuilds", "rebuilds of inner nodes"),
    ("rebuild_seconds", "seconds in rebuilds"),
)


def _tree_curves(table, colours):
    figures = []
    for benchmark in model.ordered(row["benchmark"] for row in table.rows):
        here = [row for row in table.rows if row["benchmark"] == benchmark]
        # Rebuilds are counted from the tree's making on: later benchmarks show those of the insertions again.
        for name, title in TREE_COLUMNS + (REBUILD_COLUMNS if benchmark == "insert" else ()):
            series = []
            for tree in model.ordered(row["tree"] for row in here):
                points = [(row["node_bytes"], row[name]) for row in here if row["tree"] == tree]
                if any(y for _, y in points):
                    series.append(charts.Series(tree, points, colours(tree), marked=True))
            rows = [[s.label, f"{x:.0f}", f"{y:.2f}" if y >= 1 else f"{y:.2g}"] for s in series for x, y in s.points]
            if series:
                below = charts.numbers(["tree", "node bytes", title], rows, f"{table.name}: {benchmark}, {title}")
                caption = f"{table.name}: {benchmark}, {title}"
                figures.append(
                    charts.lines(
                        caption, series, "bytes of a node", title, x_scale="steps", x_text=lambda v: f"{v:.0f}", below=below
                    )
                )
    return figures
