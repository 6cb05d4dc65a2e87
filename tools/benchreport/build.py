"""A page from loaded files."""

from . import model, page, sections, svg
from .load import Curve, Document, TreeTable


def _facts(document):
    environment = document.content["environment"]
    facts = [
        ("Measured", environment.get("date")),
        ("CPU", f"{environment.get('cpus', '?')} × {environment.get('cpu', '?')}"),
        ("Kernel", environment.get("kernel")),
        ("Files on", environment.get("file_system")),
        ("BraidDB", " ".join(str(environment.get(name, "")) for name in ("version", "commit"))),
    ]
    facts = [(name, value) for name, value in facts if value]
    for engine in document.content["engines"]:
        settings = str(engine.get("settings", "")).split("WARNING:")[0].strip()
        said = "; ".join(part for part in (str(engine.get("version", "")), settings) if part)
        facts.append((engine["engine"], f"{said}. An acknowledged write survives {engine.get('survives', 'what is not known')}."))
    return "<dl>" + "".join(f"<dt>{svg.escape(name)}</dt><dd>{svg.escape(value)}</dd>" for name, value in facts) + "</dl>"


def head(documents, others=()):
    """What was measured on, what was typed, warnings and failures."""
    parts = []
    if documents:
        parts.append(_facts(documents[0]))
    warnings = []
    for document in documents:
        warnings.append(document.content["environment"].get("warnings", ""))
        warnings += [
            str(engine["settings"]).split("WARNING:")[1]
            for engine in document.content["engines"]
            if "WARNING:" in str(engine.get("settings", ""))
        ]
        warnings += [
            f"{document.name}: {failure.get('engine', '?')} failed in round {int(failure.get('round', 0)) + 1}: its process "
            f"{failure.get('what', '')}."
            for failure in document.content.get("failures", [])
        ]
    parts += [f'<p class="warn">{svg.escape(text.strip())}</p>' for text in model.ordered(warnings) if text.strip()]
    commands = "".join(f"<pre>{svg.escape(' '.join(map(str, d.content['command'])))}</pre>" for d in documents)
    files = "".join(f"<li>{svg.escape(name)}</li>" for name in [d.path for d in documents] + [one.name for one in others])
    parts.append(f"<details><summary>Files and commands</summary><ul>{files}</ul>{commands}</details>")
    return "".join(parts)


def parts(documents, reports, trees, axis=None, wanted=None, by_name=False, benchmarks=()):
    """The sections for these files. `axis`: a flag that documents differ in, else the one that is most likely meant. `wanted`:
    anchors of the sections, else all that the files have something for. `by_name`: what differs is said by the files' names, and
    no flag is an axis. `benchmarks`: those that are shown, else all."""
    if not by_name:
        axis = axis or model.axis_flag(documents, model.differing_flags(documents))
    runs = model.collect(documents, by_name=by_name)
    along_axis = model.collect(documents, without=(axis,)) if axis else runs
    if benchmarks:
        runs, along_axis = ([run for run in some if run.benchmark in benchmarks] for some in (runs, along_axis))
    colours = sections.Colours()
    along_colours = sections.Colours() if axis else colours
    made = [
        sections.speeds(along_axis, axis, along_colours),
        sections.scaling(along_axis, axis, along_colours) if axis else None,
        sections.over_time(runs, colours),
        sections.latencies(runs, colours),
        sections.recovery(runs, colours),
        sections.written(runs, colours),
        sections.structure(runs),
        sections.curves(reports, colours),
        sections.trees(trees, colours),
    ]
    return [one for one in made if one and (wanted is None or one.anchor in wanted)]


def build(files, title):
    """`files`: what load() gave. The whole page as text."""
    documents = [one for one in files if isinstance(one, Document)]
    reports = [one for one in files if isinstance(one, Curve)]
    trees = [one for one in files if isinstance(one, TreeTable)]
    return page.page(title, head(documents, reports + trees), parts(documents, reports, trees))
