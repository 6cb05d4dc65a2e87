"""Charts: each is a <figure>: a caption, a legend in HTML, which cannot overlap anything, an SVG, a table of its numbers."""

import itertools
from dataclasses import dataclass, field

from . import svg

WIDTH, HEIGHT = 620, 300
LEFT, RIGHT, TOP, BOTTOM = 88, 24, 14, 46

_identities = itertools.count(1)


@dataclass
class Series:
    label: str
    points: list  # (x, y), in the order of x
    index: int  # of its colour, dashes and marks: the same label has the same everywhere on a page
    bands: list = field(default_factory=list)  # (from x, to x) that are marked
    marked: bool = False  # a mark at each point


def table(head, rows, caption):
    """The first column is the rows' head. Numbers are to be text already."""
    cells = "".join(f'<th scope="col">{svg.escape(name)}</th>' for name in head)
    body = "".join(
        "<tr>"
        + f'<th scope="row">{svg.escape(row[0])}</th>'
        + "".join(f"<td>{svg.escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{svg.escape(caption)}"><table><caption>{svg.escape(caption)}'
        f"</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def numbers(head, rows, caption):
    """A table that is folded away."""
    return f"<details><summary>Numbers</summary>{table(head, rows, caption)}</details>" if rows else ""


def legend(entries):
    """entries: (label, index, kind), the kind being line, bar or mark."""
    items = []
    for label, index, kind in entries:
        if kind == "bar":
            sample = f'<rect x="1" y="1" width="20" height="10" rx="2" class="bar {svg.colour(index)}"/>'
        else:
            sample = f'<line x1="0" y1="6" x2="22" y2="6" class="curve {svg.colour(index)}"{svg.dash(index)}/>'
            sample += svg.marker(11, 6, index) if kind == "mark" else ""
        items.append(
            f'<li><svg viewBox="0 0 22 12" width="22" height="12" aria-hidden="true">{sample}</svg>{svg.escape(label)}</li>'
        )
    return f'<ul class="legend">{"".join(items)}</ul>' if items else ""


def figure(caption, picture, key="", below="", note=""):
    note = f'<p class="note">{svg.escape(note)}</p>' if note else ""
    return f"<figure><figcaption>{svg.escape(caption)}</figcaption>{key}{picture}{note}{below}</figure>"


def identity():
    return f"f{next(_identities)}"


def _frame(x, y, x_label, y_label, x_text, y_text):
    """Grid, axes and their names."""
    parts = []
    for tick in y.ticks:
        parts += [
            svg.line(LEFT, y(tick), WIDTH - RIGHT, y(tick), "grid"),
            svg.text(LEFT - 8, y(tick) + 4, y_text(tick), "end", "tick"),
        ]
    for tick in x.ticks:
        parts += [
            svg.line(x(tick), HEIGHT - BOTTOM, x(tick), HEIGHT - BOTTOM + 5, "axis"),
            svg.text(x(tick), HEIGHT - BOTTOM + 18, x_text(tick), "middle", "tick"),
        ]
    parts += [
        svg.line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis"),
        svg.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_label, "middle", "name"),
        svg.text(14, (TOP + HEIGHT - BOTTOM) / 2, y_label, "middle", "name", rotate=-90),
    ]
    return parts


def _curve(series, x, y):
    parts = [
        svg.rectangle(
            x(begin),
            TOP,
            max(x(end) - x(begin), 2),
            HEIGHT - BOTTOM - TOP,
            f"stall {svg.colour(series.index)}",
            f"{series.label}: next to nothing was done from {begin:.2f} s to {end:.2f} s",
        )
        for begin, end in series.bands
    ]
    path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in series.points)
    if len(series.points) > 1:
        parts.append(
            f'<polyline points="{path}" class="curve {svg.colour(series.index)}"{svg.dash(series.index)}>'
            f"<title>{svg.escape(series.label)}</title></polyline>"
        )
    if series.marked or len(series.points) == 1:
        parts += [
            svg.marker(x(a), y(b), series.index, f"{series.label}: {svg.short(b)} at {svg.short(a)}") for a, b in series.points
        ]
    return parts


def lines(
    caption,
    series,
    x_label,
    y_label,
    *,
    x_scale="linear",
    y_scale="linear",
    x_text=svg.short,
    y_text=svg.short,
    below="",
    note="",
    says="",
):
    """Curves over one x axis. x_scale: linear, from 0; log; steps, for a few values. y_scale: linear, from 0; bytes and counts,
    the same with such ticks; nines."""
    xs = [a for s in series for a, _ in s.points] or [0]
    ys = [b for s in series for _, b in s.points] or [0]
    begin, end = LEFT, WIDTH - RIGHT
    if x_scale == "log":
        x = svg.Log(min(v for v in xs if v > 0), max(xs), begin, end)
    else:
        x = svg.Steps(xs, begin, end) if x_scale == "steps" else svg.Linear(0, max(xs), begin, end, ticks=6)
    if y_scale == "nines":
        y = svg.Nines(5, HEIGHT - BOTTOM, TOP)
    else:
        y = svg.Linear(0, max(ys), HEIGHT - BOTTOM, TOP, binary=y_scale == "bytes", whole=y_scale == "counts")
    parts = _frame(x, y, x_label, y_label, x_text, y_text)
    for one in series:
        parts += _curve(one, x, y)
    description = says or "; ".join(
        f"{s.label}: from {y_text(s.points[0][1])} to {y_text(s.points[-1][1])}" for s in series if s.points
    )
    drawing = svg.picture(WIDTH, HEIGHT, caption, f"{y_label} by {x_label}. {description}", parts, identity())
    key = legend([(s.label, s.index, "mark" if s.marked else "line") for s in series])
    return figure(caption, drawing, key, below, note)


BAR, GAP, GROUP_HEAD, LABEL_WIDTH = 18, 6, 24, 184
CHARACTER = 7.6  # a digit's width in the widest of the page's fonts; few characters are wider


def _cut(label, most):
    """Long labels lose their middle; the whole is in the bar's title and in the table."""
    if len(label) <= most:
        return label
    return label[: most // 2] + "…" + label[len(label) - (most - most // 2 - 1) :]


def bars(caption, groups, *, note="", below="", one_scale=False, says=""):
    """Horizontal bars. groups: [(name, [(label, parts, text)])], parts being [(value, index)], one behind the other. Each group
    has a scale of its own unless one_scale."""
    totals = {name: max([sum(v for v, _ in parts) for _, parts, _ in rows] or [0]) for name, rows in groups}
    highest = max(totals.values(), default=0)
    longest = max([len(words) for _, rows in groups for _, _, words in rows] or [0])
    room = WIDTH - LABEL_WIDTH - 8 - longest * CHARACTER  # for the longest bar, beside what is said of it
    height, drawn, said = 6, [], []
    for name, rows in groups:
        if name:
            drawn.append(svg.text(4, height + 16, name, kind="group"))
            height += GROUP_HEAD
        whole = (highest if one_scale else totals[name]) or 1
        for label, parts, words in rows:
            drawn.append(svg.text(LABEL_WIDTH - 8, height + 13, _cut(label, int((LABEL_WIDTH - 8) / CHARACTER)), "end", "tick"))
            at = LABEL_WIDTH
            for value, index in parts:
                width = value / whole * room
                drawn.append(
                    svg.rectangle(at, height, max(width, 1), BAR, f"bar {svg.colour(index)}", f"{name} {label}: {words}", 2)
                )
                at += width
            drawn.append(svg.text(at + 8, height + 13, words, kind="value"))
            said.append(f"{name} {label}: {words}".strip())
            height += BAR + GAP
        height += 6
    drawing = svg.picture(WIDTH, height, caption, says or "; ".join(said), drawn, identity())
    return figure(caption, drawing, "", below, note)
