"""Pictures of the tables of docs/RESULTS.md: a bar for each figure, drawn as SVG."""
import html
import json
import math
import re

LEFT, BAR, WIDTH, STEP = 400, 380, 860, 20
COLORS = ("#3f51b5", "#ef6c00", "#00897b", "#8e24aa")


def number(cell):
    """The figure that a cell begins with, or None."""
    match = re.match(r"(\d[\d,]*\.?\d*)", cell.strip())
    return float(match.group(1).replace(",", "")) if match else None


def text(x, y, content, anchor="start", weight="normal"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-weight="{weight}" font-size="13" '
            f'font-family="sans-serif" fill="currentColor">{html.escape(content)}</text>')


def bars(title, rows, series, scale, note, mark=None):
    """A picture: for each row a group of bars, one for each of `series`. `scale` gives the length of a figure, 0 to 1, in its
    row. `mark` is the length at which a line is drawn."""
    height = 30 + len(rows) * (STEP * len(series) + 8)
    out = [f'<svg class="plot" viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">',
           f"<title>{html.escape(title)}</title>", text(0, 14, note)]
    x = LEFT + 20
    for index, name in enumerate(series if len(series) > 1 else []):
        out.append(f'<rect x="{x}" y="4" width="12" height="12" fill="{COLORS[index]}"/>' + text(x + 17, 15, name))
        x += 40 + 8 * len(name)
    y = 30
    for label, values in rows:
        shown = label.replace("`", "")
        shown = shown if len(shown) <= 52 else shown[:51] + "…"
        out.append(text(0, y + STEP * len(series) / 2 + 5, shown))
        for index, cell in enumerate(values):
            value = number(cell)
            if value is not None:
                length = max(1.0, BAR * scale(value, [number(each) for each in values]))
                out.append(f'<rect x="{LEFT}" y="{y + 3}" width="{length:.1f}" height="{STEP - 6}" fill="{COLORS[index]}"/>')
                out.append(text(LEFT + length + 6, y + 14, cell.split(" (")[0]))
            y += STEP
        y += 8
    if mark is not None:
        x = LEFT + BAR * mark
        out.append(f'<line x1="{x:.0f}" x2="{x:.0f}" y1="26" y2="{height}" stroke="currentColor" stroke-dasharray="3 3"/>')
    return "\n".join([*out, "</svg>"])


def of_result(result):
    """The picture of one table, or None if its columns are not figures of one kind."""
    head, rows = result["head"], result["rows"]
    if head[-1] == "ratio" and len(head) == 3:  # benchmark, reference, ratio
        values = [number(row[2]) for row in rows]
        least, most = math.log(min(values)), math.log(max(values))
        scale = lambda value, _: 0.02 + 0.98 * (math.log(value) - least) / (most - least)  # noqa: E731
        note = "ratio, logarithmic; the line is 1"
        return bars(result["title"], [(row[0], [row[2]]) for row in rows], ["ratio"], scale, note, scale(1, None))
    engines = [index for index, name in enumerate(head) if name in ("BraidDB", "RocksDB", "LMDB", "LevelDB")]
    if len(engines) > 1:
        scale = lambda value, group: value / max(each for each in group if each)  # noqa: E731
        chosen = [(row[0], [row[index] for index in engines]) for row in rows if sum(number(row[index]) is not None for index in engines) > 1
                  and not any(row[index].strip().endswith("s") for index in engines)]
        return bars(result["title"], chosen, [head[index] for index in engines], scale, "k operations/s; each row has its own scale")
    return None


def add(markdown, root):
    """The page of results with a picture before each table that has one."""
    for path in sorted((root / "docs/results").glob("*.json")):
        for result in json.loads(path.read_text(encoding="utf-8"))["results"]:
            picture = of_result(result)
            heading = f"## {result['title']}\n"
            if picture and heading in markdown:
                before, after = markdown.split(heading, 1)
                table = "| " + " | ".join(result["head"]) + " |"
                position = after.index(table)
                markdown = before + heading + after[:position] + picture + "\n\n" + after[position:]
    return markdown
