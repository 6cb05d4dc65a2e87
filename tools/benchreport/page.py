"""The page around the figures: one HTML file that needs nothing else, light or dark as the reader has it."""

from dataclasses import dataclass, field

from . import svg

CSS = (
    """
:root{color-scheme:light dark;--back:#fbfbfa;--card:#fff;--ink:#1c1d1f;--soft:#55585e;--rule:#dcdde0;--grid:#e8e9eb;--box:#eef0f3;
--c0:#3c5dde;--c1:#a35802;--c2:#1ca78c;--c3:#6d0c91;--c4:#b18d1c;--c5:#485662;
--c6:#7f0b07;--c7:#1504cd;--c8:#9b7fee;--c9:#746ea7}
@media(prefers-color-scheme:dark){:root{--back:#16171a;--card:#1e2024;--ink:#e9eaec;--soft:#a9adb5;--rule:#3a3d44;--grid:#2e3137;
--box:#2a2d33;--c0:#5681fc;--c1:#eb6a25;--c2:#98fadc;--c3:#a35f9c;--c4:#f6e306;--c5:#afacbc;
--c6:#c43a2e;--c7:#25afff;--c8:#f0ae4f;--c9:#89937f}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main,header,nav{max-width:1320px;margin:0 auto;padding:0 24px}
header{padding-top:28px}h1{font-size:26px;margin:0 0 4px}
h2{font-size:20px;margin:36px 0 6px;padding-top:10px;border-top:1px solid var(--rule)}
h3{font-size:16.5px;margin:22px 0 4px}h4{font-size:15px;margin:16px 0 4px}p{margin:6px 0;max-width:95ch}a{color:var(--c0)}
nav ul{display:flex;flex-wrap:wrap;gap:4px 18px;padding:0;margin:12px 0 0;list-style:none}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,540px),1fr));gap:16px;align-items:start;margin:10px 0}
figure{margin:0;padding:14px 16px;background:var(--card);border:1px solid var(--rule);border-radius:8px;min-width:0}
figcaption{font-weight:600;margin-bottom:4px}figure svg{display:block;width:100%;height:auto}
.note,.soft{color:var(--soft);font-size:13.5px}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;padding:0;margin:2px 0 6px;list-style:none;font-size:13px}
.legend li{display:flex;align-items:center;gap:6px}.legend svg{width:22px;flex:none}
.warn{max-width:none;border-left:4px solid var(--c1);padding:2px 12px;background:var(--card)}
details{margin-top:6px;font-size:13.5px}summary{cursor:pointer;color:var(--soft)}
.scroll{overflow-x:auto}
.scroll:focus-visible,summary:focus-visible,a:focus-visible{outline:2px solid var(--c0);outline-offset:2px}
table{border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums;margin:6px 0}
caption{text-align:left;color:var(--soft);padding:2px 0 4px}
th,td{padding:3px 10px 3px 0;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}
th[scope=row],thead th:first-child{text-align:left}thead th,th[scope=row]{white-space:normal}
th[scope=row]{overflow-wrap:anywhere;min-width:9ch}thead th{color:var(--soft);font-weight:600}
pre{overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere;font-size:12.5px;margin:4px 0}
dl{margin:6px 0;display:grid;grid-template-columns:max-content 1fr;gap:2px 16px}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
text{font:12px system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--ink)}
text.tick,text.name,text.boxtext{fill:var(--soft)}
text.group,text.boxhead{font-weight:600}text.boxhead{font-size:12px}
.grid line{stroke:var(--grid)}line.grid{stroke:var(--grid)}line.axis{stroke:var(--soft)}
.curve{fill:none;stroke-width:2;stroke-linejoin:round}.mark{stroke:var(--card);stroke-width:1}
.stall{opacity:.28}.medium{fill:none;stroke:var(--rule)}.box{fill:var(--box);stroke:var(--rule)}
.empty{fill:var(--box);stroke:var(--rule)}
"""
    + "".join(
        f".curve.c{i}{{stroke:var(--c{i})}}.bar.c{i},.mark.c{i},.stall.c{i}{{fill:var(--c{i})}}"
        f".c{i}box{{stroke:var(--c{i});stroke-width:2}}"
        for i in range(svg.SERIES_COLOURS)
    )
    + """
@media print{figure{break-inside:avoid}}
"""
)


def grid(figures):
    return f'<div class="grid">{"".join(figures)}</div>' if figures else ""


@dataclass
class Section:
    """A part of a page with a heading, whose anchor is its own among those beside it. Inside are HTML and further sections."""

    anchor: str
    title: str
    body: str
    lead: str = ""
    inside: list = field(default_factory=list)

    def html(self, level=2, prefix=""):
        anchor = prefix + self.anchor
        lead = "".join(f"<p>{svg.escape(part)}</p>" for part in self.lead.split("\n") if part)
        inside = "".join(one.html(level + 1, anchor + "-") for one in self.inside)
        return (
            f'<section id="{anchor}" aria-labelledby="{anchor}-h"><h{level} id="{anchor}-h">{svg.escape(self.title)}</h{level}>'
            f"{lead}{self.body}{inside}</section>"
        )


def page(title, head, sections):
    """`head`: HTML below the title. `sections`: None among them is left out."""
    sections = [one for one in sections if one]
    links = "".join(f'<li><a href="#{one.anchor}">{svg.escape(one.title)}</a></li>' for one in sections)
    body = "".join(one.html() for one in sections)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,'
        f'initial-scale=1"><title>{svg.escape(title)}</title><style>{CSS}</style></head><body><header>'
        f"<h1>{svg.escape(title)}</h1>"
        f'{head}</header><nav aria-label="Sections"><ul>{links}</ul></nav><main>{body}</main></body></html>\n'
    )
