"""The reference of the C++ API: a page for each public header, made of Doxygen's XML. Without Doxygen a page lists its header."""
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import comments

FILTER = Path(__file__).resolve().parent / "doxygen_filter.py"
PURPOSES = {  # in the order of the index
    "db.h": "open, read, write, administer",
    "status.h": "results of calls",
    "slice.h": "bytes of keys and values",
    "iterator.h": "scans",
    "write_batch.h": "atomic batches",
    "write_batch_with_index.h": "batches that can be read",
    "column_family.h": "column families",
    "transaction.h": "transactions",
    "ttl.h": "keys that expire",
    "merge_operator.h": "merge operators",
    "compaction_filter.h": "compaction filters",
    "comparator.h": "orders of keys",
    "slice_transform.h": "prefixes",
    "backup.h": "checkpoints, backups, sorted files",
    "check.h": "check and repair",
    "transaction_log.h": "the log as history",
    "cache_limit.h": "one bound for several lookup caches",
    "options_file.h": "the file OPTIONS",
    "event_listener.h": "events",
    "metrics.h": "metrics",
    "statistics.h": "counters and histograms",
    "perf_context.h": "counters of one thread",
}
SECTIONS = ("public-type", "public-static-func", "public-func", "public-attrib", "public-static-attrib", "protected-func", "typedef", "enum", "var", "func")
NOT_EXTRACTED = {"options.h", "c.h"}  # options.h has a page of its own; docs/C_API.md describes c.h


def run_doxygen(root, work):
    """The folder with Doxygen's XML, or None if Doxygen is not installed."""
    program = shutil.which("doxygen")
    if not program:
        return None
    work.mkdir(parents=True, exist_ok=True)
    settings = {
        "INPUT": root / "include/braiddb", "FILE_PATTERNS": "*.h", "EXCLUDE_PATTERNS": "*/c.h", "OUTPUT_DIRECTORY": work,
        "INPUT_FILTER": f"{sys.executable} {FILTER}", "GENERATE_HTML": "NO", "GENERATE_LATEX": "NO", "GENERATE_XML": "YES",
        "XML_PROGRAMLISTING": "NO", "QUIET": "YES", "EXTRACT_ALL": "YES", "WARN_IF_UNDOCUMENTED": "NO", "FULL_PATH_NAMES": "NO",
    }
    text = "\n".join(f"{key} = {value}" for key, value in settings.items())
    done = subprocess.run([program, "-"], input=text, text=True, capture_output=True, cwd=root)
    if done.returncode or done.stderr.strip():
        raise RuntimeError(f"doxygen: {done.stderr.strip() or done.returncode}")
    return work / "xml"


def text_of(element):
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def description(element):
    found = []
    for part in ("briefdescription", "detaileddescription"):
        for verbatim in element.iterfind(f"{part}//verbatim"):
            found.append(comments.markdown(verbatim.text.strip("\n").split("\n")))
    return "\n\n".join(found)


def signature(member):
    kind = member.get("kind")
    name = member.findtext("name")
    if kind == "enum":
        return f"enum class {name}" if member.get("strong") == "yes" else f"enum {name}"
    template = ", ".join(text_of(parameter) for parameter in member.iterfind("templateparamlist/param"))
    head = f"template <{template}>\n" if template else ""
    words = ["static"] * (member.get("static") == "yes") + ["virtual"] * (member.get("virt") in ("virtual", "pure-virtual"))
    result = text_of(member.find("type"))
    if kind == "typedef":
        return f"{head}using {name} = {result}"
    arguments = member.findtext("argsstring") or ""
    if kind == "variable":
        return f"{head}{result} {name}{arguments}{' ' if member.findtext('initializer') else ''}{member.findtext('initializer') or ''}"
    text = " ".join([*words, *([result] if result else []), name + arguments])
    for old, new in (("< ", "<"), (" >", ">"), (" &&", "\0 "), (" &", "& "), ("\0", "&&"), (" *", "* "), ("* *", "**"), ("=0", " = 0"), ("=default", " = default")):
        text = text.replace(old, new)
    return head + re.sub(r" +", " ", re.sub(r"(?<=[\w)\"])=(?=[\w\"])", " = ", text)).replace("* )", "*)").replace("& )", "&)").replace("* ,", "*,")


def member_text(member, level):
    out = [f"{'#' * level} `{member.findtext('name')}`\n", f"```cpp\n{signature(member)}\n```\n", description(member) + "\n"]
    values = member.findall("enumvalue")
    if values:
        rows = [f"| `{value.findtext('name')}` | {comments.cell(' '.join(description(value).split()))} |" for value in values]
        out.append("| value | meaning |\n|---|---|\n" + "\n".join(rows) + "\n")
    return out


def is_shown(member):
    """Whether a member is one that a program calls by its name: no copy, move, destructor or friend."""
    name = member.findtext("name")
    return member.get("kind") != "friend" and not name.startswith(("~", "operator=")) and "=delete" not in (
        member.findtext("argsstring") or "").replace(" ", "")


def members(compound, level, header=None):
    """Members in their order, of `header` only if that is given. Those without a comment that follow one another share one block."""
    out, plain = [], []

    def close():
        if plain:
            out.append("```cpp\n" + "\n".join(plain) + "\n```\n")
            plain.clear()

    for kind in SECTIONS:
        for section in compound.iterfind(f"sectiondef[@kind='{kind}']"):
            for member in filter(is_shown, section.iterfind("memberdef")):
                if header and Path(member.find("location").get("file")).name != header:
                    continue
                if description(member) or member.find("enumvalue") is not None:
                    close()
                    out.extend(member_text(member, level))
                else:
                    plain.append(signature(member) + ";")
    close()
    return out


def header_page(xml, header):
    """A page of a header's declarations."""
    index = ElementTree.parse(xml / "index.xml").getroot()
    ids = {(compound.get("kind"), compound.findtext("name")): compound.get("refid") for compound in index.iterfind("compound")}
    file = ElementTree.parse(xml / f"{ids['file', header]}.xml").getroot().find("compounddef")
    out = [f"# {header}\n", f"```cpp\n#include <braiddb/{header}>\n```\n", description(file) + "\n"]
    for inner in file.iterfind("innerclass"):
        if inner.get("prot") == "private":
            continue
        compound = ElementTree.parse(xml / f"{inner.get('refid')}.xml").getroot().find("compounddef")
        name = text_of(compound.find("compoundname")).removeprefix("braiddb::")
        out += [f"## {compound.get('kind')} `{name}`\n", description(compound) + "\n", *members(compound, 3)]
    namespace = ElementTree.parse(xml / f"{ids['namespace', 'braiddb']}.xml").getroot().find("compounddef")
    free = members(namespace, 3, header)
    if free:
        out += ["## Functions, types and constants\n", *free]
    return "\n".join(out)


def pages(root, work):
    headers = sorted(path.name for path in (root / "include/braiddb").glob("*.h"))
    order = [name for name in PURPOSES if name in headers] + [name for name in headers if name not in PURPOSES]
    xml = run_doxygen(root, work)
    rows = [f"| [{name}]({Path(name).stem}.md) | {PURPOSES.get(name, '')} |" for name in order if name not in NOT_EXTRACTED]
    rows += ["| [options.h](../options.md) | every option |", "| [c.h](c.md) | the [C API](../../C_API.md) |"]
    made = {"index.md": "# C++ API\n\nThe public headers. They use standard types only, and throw exceptions only where they say so.\n\n"
                        "| header | for |\n|---|---|\n" + "\n".join(rows) + "\n"}
    for header in headers:
        if header == "options.h":
            continue
        if xml and header not in NOT_EXTRACTED:
            made[f"{Path(header).stem}.md"] = header_page(xml, header)
        else:
            text = (root / "include/braiddb" / header).read_text(encoding="utf-8")
            made[f"{Path(header).stem}.md"] = f"---\nsearch:\n  exclude: true\n---\n\n# {header}\n\n````cpp\n{text.rstrip()}\n````\n"
    return {f"reference/cpp/{name}": text for name, text in made.items()}
