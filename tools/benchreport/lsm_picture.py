"""A picture of what BraidDB consists of at one moment: memtables and indexes in DRAM, tables, last level and segments below."""

from . import charts, svg

WIDTH, HEIGHT = 620, 340
LEFT, INSIDE = 12, 596
MOST_TABLES = 60


def _box(x, y, width, height, kind, head, words):
    """A box with one or two lines in it; the second is small."""
    return [
        svg.rectangle(x, y, width, height, kind, f"{head}: {words}", 4),
        svg.text(x + 9, y + 18, head, kind="boxhead"),
        svg.text(x + 9, y + 35, words, kind="boxtext"),
    ]


def _dram(state):
    parts = [
        svg.rectangle(LEFT, 8, INSIDE, 86, "medium", radius=6),
        svg.text(LEFT + 10, 26, "DRAM", kind="group"),
        svg.text(LEFT + INSIDE - 10, 26, f"{svg.size(state.get('dram_bytes', 0))} in all", "end", "tick"),
    ]
    immutables = int(state.get("immutable_memtables", 0))
    boxes = [
        ("Memtable", f"{svg.short(state.get('memtable_entries', 0))} entries", "box c0box"),
        (f"{immutables} immutable", f"{svg.size(state.get('memtables_dram_bytes', 0))} all", "box c0box"),
        ("Lookup cache", svg.size(state.get("lookup_cache_dram_bytes", 0)), "box"),
        ("Key filter", svg.size(state.get("filter_dram_bytes", 0)), "box"),
        ("Index of L1", svg.size(state.get("last_level_dram_bytes", 0)), "box"),
    ]
    width = (INSIDE - 20 - 8 * (len(boxes) - 1)) / len(boxes)
    for i, (head, words, kind) in enumerate(boxes):
        parts += _box(LEFT + 10 + i * (width + 8), 38, width, 46, kind, head, words)
    return parts


def _tables(state, top):
    count = int(state.get("l0_tables", 0))
    parts = [
        svg.text(LEFT + 10, top + 14, f"L0: {count} tables, {svg.short(state.get('l0_entries', 0))} entries", kind="boxhead")
    ]
    shown = min(count, MOST_TABLES)
    for i in range(shown):
        parts.append(
            svg.rectangle(
                LEFT + 10 + (i % 30) * 18, top + 22 + (i // 30) * 16, 14, 12, "box c1box", f"table {i + 1} of {count}", 2
            )
        )
    if count > shown:
        parts.append(svg.text(LEFT + INSIDE - 10, top + 48, f"+{count - shown}", "end", "tick"))
    return parts


def _segments(state, top):
    """One bar: what persistent memory is taken by, each to scale."""
    whole = max(state.get("pm_bytes", 0), state.get("segments_pm_bytes", 0), 1)
    live, index = state.get("live_pm_bytes", 0), state.get("last_level_pm_bytes", 0)
    other = max(state.get("segments_pm_bytes", 0) - live - index, 0)
    rest = max(whole - live - index - other, 0)
    shares = [
        ("live entries", live, "bar c2"),
        ("last level's leaves", index, "bar c0"),
        ("dead or not yet written", other, "bar c4"),
        ("free, or outside of segments", rest, "empty"),
    ]
    parts = [
        svg.text(
            LEFT + 10,
            top + 14,
            f"Persistent memory: {svg.size(whole)}; {int(state.get('segments', 0))} segments, "
            f"{int(state.get('free_segments', 0))} free",
            kind="boxhead",
        )
    ]
    at, room = LEFT + 10, INSIDE - 20
    for name, value, kind in shares:
        parts.append(svg.rectangle(at, top + 24, value / whole * room, 20, kind, f"{name}: {svg.size(value)}"))
        at += value / whole * room
    for i, (name, value, kind) in enumerate(shares):
        x, y = LEFT + 10 + (i % 2) * 290, top + 54 + (i // 2) * 20
        parts += [
            svg.rectangle(x, y, 12, 12, kind, radius=2),
            svg.text(x + 18, y + 10, f"{name}: {svg.size(value)}", kind="tick"),
        ]
    return parts


def picture(caption, state):
    """`state`: a sample of a run's state."""
    entries = svg.short(state.get("last_level_entries", 0))
    parts = _dram(state)
    parts += [svg.rectangle(LEFT, 106, INSIDE, 226, "medium", radius=6)]
    parts += _tables(state, 112)
    parts += _box(LEFT + 10, 172, INSIDE - 20, 46, "box c3box", "L1, the last level", f"{entries} entries")
    parts += _segments(state, 226)
    says = (
        f"{int(state.get('immutable_memtables', 0))} immutable memtables, {int(state.get('l0_tables', 0))} tables in L0, "
        f"{entries} entries in the last level, {svg.size(state.get('dram_bytes', 0))} of DRAM, "
        f"{svg.size(state.get('pm_bytes', 0))} of persistent memory"
    )
    rows = [
        [name, svg.size(value) if name.endswith("bytes") else f"{value:,.0f}"]
        for name, value in state.items()
        if name != "seconds"
    ]
    return charts.figure(
        caption,
        svg.picture(WIDTH, HEIGHT, caption, says, parts, charts.identity()),
        below=charts.numbers(["what", "how much"], rows, caption),
    )
