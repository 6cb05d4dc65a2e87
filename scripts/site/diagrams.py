#!/usr/bin/env python3
"""usage: scripts/site/diagrams.py [--check]

Writes the pictures of docs/concepts, docs/images/*.svg. --check ends with 1 if a file differs from what would be written.
"""
import html
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs/images"
DRAM, MEDIA, NEW, OLD, INK = "#e8eaf6", "#fff3e0", "#c8e6c9", "#eceff1", "#263238"


class Picture:
    """An SVG picture. Places and sizes are in pixels."""

    def __init__(self, title, width, height):
        self.width, self.height = width, height
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="14" fill="{INK}">',
            f"<title>{html.escape(title)}</title>",
            f'<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
            f'<path d="M0 0 10 5 0 10z" fill="{INK}"/></marker><marker id="new" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
            'markerHeight="7" orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" fill="#2e7d32"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        ]

    def box(self, x, y, width, height, lines="", fill="#ffffff", dashed=False, size=14):
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{fill}" stroke="{INK}"{dash}/>')
        lines = [lines] if isinstance(lines, str) else lines
        top = y + height / 2 - (len(lines) - 1) * (size + 4) / 2 + size * 0.35
        for index, line in enumerate(lines):
            self.text(x + width / 2, top + index * (size + 4), line, "middle", size)

    def area(self, x, y, width, height, name, fill):
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}"/>')
        self.text(x + 10, y + 20, name, weight="bold")

    def text(self, x, y, line, anchor="start", size=14, weight="normal"):
        self.parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}">{html.escape(line)}</text>')

    def arrow(self, points, new=False, dashed=False):
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        self.parts.append(self._stroke(path, new, dashed))

    def bend(self, x1, y1, x2, y2, new=False, dashed=False):
        """An arrow from one row to another."""
        path = f"M{x1:g} {y1:g} C{x1:g} {(y1 + y2) / 2:g} {x2:g} {(y1 + y2) / 2:g} {x2:g} {y2:g}"
        self.parts.append(self._stroke(path, new, dashed))

    def _stroke(self, path, new, dashed):
        color, tip, width = ("#2e7d32", "new", 2.5) if new else (INK, "tip", 1.3)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{width}"{dash} marker-end="url(#{tip})"/>'

    def number(self, x, y, number):
        self.parts.append(f'<circle cx="{x}" cy="{y}" r="11" fill="#3f51b5"/>')
        self.parts.append(f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="#ffffff" font-weight="bold">{number}</text>')

    def svg(self):
        return "\n".join([*self.parts, "</svg>", ""])


def put():
    picture = Picture("A put: one append, one fence", 900, 400)
    picture.area(20, 20, 860, 130, "DRAM", DRAM)
    picture.area(20, 190, 860, 190, "Persistent memory: the writer's open segment of the log", MEDIA)
    picture.box(50, 60, 150, 60, ["put(key, value)"])
    picture.box(270, 60, 170, 60, ["sequence number,", "reserved log space"])
    picture.box(510, 60, 150, 60, ["memtable:", "address of the entry"])
    picture.box(700, 60, 150, 60, ["lookup cache:", "address of the entry"])
    picture.number(262, 52, 1)
    picture.arrow([(200, 90), (268, 90)])
    picture.box(50, 250, 110, 60, ["older", "entry"], OLD)
    picture.box(165, 250, 110, 60, ["older", "entry"], OLD)
    x = 280
    for width, name in ((110, ["checksum,", "number, type"]), (80, "key"), (110, "value"), (110, ["next[0…h]", "for later"])):
        picture.box(x, 250, width, 60, name, NEW)
        x += width
    picture.box(690, 250, 160, 60, "free", MEDIA, dashed=True)
    picture.number(355, 172, 2)
    picture.arrow([(355, 120), (355, 248)])
    picture.text(375, 177, "copy, flush lines (clwb)")
    picture.number(300, 345, 3)
    picture.text(320, 350, "one fence (sfence): the write is durable")
    picture.number(585, 172, 4)
    picture.text(604, 177, "publish")
    picture.arrow([(585, 250), (585, 122)])
    picture.bend(600, 250, 775, 122)
    return picture.svg()


def merge():
    """Each step of the merge as a row: where the arrows of the lists lead."""
    keys = {"L0": [2, 5, 8], "L1": [1, 3, 6, 9]}
    level_of = {key: level for level, members in keys.items() for key in members}
    steps = [
        ("Before: the table holds 2, 5, 8; L1 holds 1, 3, 6, 9",
         [("h0", 2), (2, 5), (5, 8)], [("h1", 1), (1, 3), (3, 6), (6, 9)], []),
        ("Merge 8, the greatest key: first 8 → 9, then 6 → 8",
         [("h0", 2), (2, 5), (5, 8)], [("h1", 1), (1, 3), (3, 6)], [(8, 9), (6, 8)]),
        ("Merge 5: first 5 → 6, then 3 → 5. A reader on the table's list is led on into L1",
         [("h0", 2), (2, 5)], [("h1", 1), (1, 3), (6, 8), (8, 9)], [(5, 6), (3, 5)]),
        ("Merge 2: first 2 → 3, then 1 → 2. All keys are in L1",
         [("h0", 2)], [("h1", 1), (3, 5), (5, 6), (6, 8), (8, 9)], [(2, 3), (1, 2)]),
        ("The MANIFEST forgets the table",
         [], [("h1", 1), (1, 2), (2, 3), (3, 5), (5, 6), (6, 8), (8, 9)], []),
    ]
    height = 165
    picture = Picture("A zipper merge, step by step", 900, height * len(steps) + 10)
    column = {key: 190 + 72 * (key - 1) for key in range(1, 10)}
    for index, (title, table, level, new) in enumerate(steps):
        top = index * height + 10
        picture.number(22, top + 12, index)
        picture.text(42, top + 17, title, weight="bold")
        rows = {"L0": top + 36, "L1": top + 106}
        last = not table

        def center(key):
            if key in ("h0", "h1"):
                return 100, rows["L0" if key == "h0" else "L1"] + 20
            return column[key] + 22, rows[level_of[key]] + 20

        if not last:
            picture.box(60, rows["L0"], 80, 40, "L0 table", OLD)
        picture.box(60, rows["L1"], 80, 40, "L1", OLD)
        for key, level_name in level_of.items():
            fill = NEW if any(key == source and level_name == "L0" for source, _ in new) else MEDIA
            picture.box(column[key], rows[level_name], 44, 40, str(key), fill)
        for source, target in [*table, *level, *new]:
            (x1, y1), (x2, y2) = center(source), center(target)
            is_new = (source, target) in new
            start = 40 if source in ("h0", "h1") else 22
            if y1 == y2:
                picture.arrow([(x1 + start, y1), (x2 - 23, y2)], is_new)
            elif y1 < y2:
                picture.arrow([(x1 + 14, y1 + 20), (x2 - 14, y2 - 21)], is_new)
            else:
                picture.arrow([(x1 + 14, y1 - 20), (x2 - 14, y2 + 21)], is_new)
    return picture.svg()


def nvtree_split():
    picture = Picture("A split of a full NV-Tree leaf", 900, 500)
    titles = ("The leaf has no room for the next element", "Write two sorted leaves; flush, fence. Nobody can reach them yet",
              "One store of 8 bytes: the left neighbor links to the first new leaf; flush, fence")
    for step, title in enumerate(titles):
        top = (10, 120, 310)[step]
        picture.number(22, top + 12, step)
        picture.text(42, top + 17, title, weight="bold")
        picture.box(40, top + 40, 130, 50, ["leaf A", "keys 1–19"], MEDIA)
        picture.box(740, top + 40, 130, 50, ["leaf C", "keys 60–90"], MEDIA)
        published = step == 2
        picture.box(330, top + 40, 240, 50, ["leaf B, full, unsorted", "40 21 33 -21 58 20 47 …"], OLD if published else MEDIA, published)
        if not published:
            picture.arrow([(170, top + 65), (328, top + 65)])
            picture.arrow([(570, top + 65), (738, top + 65)])
        if step:
            picture.box(240, top + 120, 190, 50, ["leaf B1, sorted", "20 33 40 …"], NEW)
            picture.box(470, top + 120, 190, 50, ["leaf B2, sorted", "47 58 …"], NEW)
            picture.arrow([(430, top + 145), (468, top + 145)])
            picture.arrow([(660, top + 145), (740, top + 92)])
        if published:
            picture.arrow([(120, top + 90), (120, top + 145), (238, top + 145)], True)
            picture.text(590, top + 60, "reused when its")
            picture.text(590, top + 78, "readers have left")
    return picture.svg()


def recovery():
    picture = Picture("What an open reads after a crash", 900, 380)
    picture.area(20, 20, 860, 150, "Persistent memory", MEDIA)
    picture.box(40, 60, 150, 80, ["L1", "durable"], NEW)
    picture.box(230, 60, 170, 80, ["listed L0 tables", "durable pointers"], NEW)
    picture.box(440, 60, 200, 80, ["log behind the boundary", "entries are durable,", "their pointers are not"], "#ffffff")
    picture.box(680, 60, 180, 80, ["entry that was being", "written: checksum", "does not match"], OLD, dashed=True)
    picture.arrow([(420, 190), (420, 150)])
    picture.text(420, 205, "log boundary", "middle")
    steps = (("read MANIFEST,", "take L1 and tables"), ("redo the newest", "journal batch"), ("replay the log", "into a new table"),
             ("checkpoint it,", "serve"), ("in the background:", "finish the merge"))
    for index, lines in enumerate(steps):
        x = 20 + index * 176
        picture.box(x, 270, 152, 70, lines, DRAM)
        picture.number(x + 4, 268, index + 1)
        if index:
            picture.arrow([(x - 24, 305), (x - 2, 305)])
    picture.text(450, 365, "The time depends on the log behind the boundary, and not on the size of the database.", "middle")
    return picture.svg()


PICTURES = {"put": put, "merge": merge, "nvtree-split": nvtree_split, "recovery": recovery}


def main():
    stale = []
    for name, draw in PICTURES.items():
        path, text = FOLDER / f"{name}.svg", draw()
        if "--check" not in sys.argv:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(f"{path.name}: not what scripts/site/diagrams.py draws")
    print("\n".join(stale), end="")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
