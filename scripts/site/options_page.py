"""The page of all options, made of include/braiddb/options.h."""
import re

import comments

HEAD = """---
search:
  boost: 2
---

# Options

Every option of the C++ interface, with its default, range and trade-off. This page is made of the header `braiddb/options.h`.

The names are the same in the [C API](../C_API.md#options-that-mean-something), in [Python](../start/python.md) and in the file
`OPTIONS` of a database. `braiddb options DATABASE` prints the stored options of a database.
"""
STRUCT = re.compile(r"^struct (\w+) \{")
FIELD = re.compile(r"^  ([\w:<>, *()]+?[ *>])(\w+)(?: = ([^;]+))?;(?:\s+// (.*))?$")
GROUP = re.compile(r"^  // ---- (.*)$")
ENUM = re.compile(r"^enum class (\w+) : \w+ \{")
VALUE = re.compile(r"^  (k\w+) = (\d+),(?:\s+// (.*))?$")


def parse(text):
    """Structures and enumerations in their order: [kind, name, comment, [group, [name, type, default, comment]...]...]."""
    found, comment, current = [], [], None
    for line in text.split("\n"):
        struct, enum, group = STRUCT.match(line), ENUM.match(line), GROUP.match(line)
        if struct or enum:
            current = ["struct" if struct else "enum", (struct or enum).group(1), comment, [["", []]]]
            found.append(current)
            comment = []
        elif group:
            title = group.group(1).rstrip(".")
            head, _, rest = title.partition(". ")
            current[3].append([head, []])
            comment = []
        elif re.match(r"^\s*//", line):
            comment.append(re.sub(r"^\s*// ?", "", line))
        elif line.startswith("};"):
            current, comment = None, []
        elif current and (field := FIELD.match(line) or VALUE.match(line)):
            if current[0] == "struct":
                kind, name, default, trailing = field.groups()
                current[3][-1][1].append([name, kind.strip(), default or "", comment + ([trailing] if trailing else [])])
            else:
                name, number, trailing = field.groups()
                current[3][-1][1].append([name, "", number, comment + ([trailing] if trailing else [])])
            comment = []
        elif not line.strip():
            comment = []
    return found


def stated_default(comment):
    match = re.search(r"Default: ((?:[^.]|\.(?=\d))+)", " ".join(comment))
    return match.group(1).strip() if match else ""


def page(root):
    out = [HEAD]
    for kind, name, comment, groups in parse((root / "include/braiddb/options.h").read_text(encoding="utf-8")):
        out.append(f"## {name}\n")
        if comment:
            out.append(comments.markdown(comment) + "\n")
        if kind == "enum":
            rows = [f"| `{value}` | {number} | {comments.cell(comments.words(' '.join(text)))} |"
                    for _, values in groups for value, _, number, text in values if text]
            if not rows:  # the comment of the enumeration has them
                continue
            out.append("| value | number | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n")
            continue
        for title, fields in groups:
            if not fields:
                continue
            if title:
                out.append(f"### {name}: {title}\n")
            rows = [f"| [`{field}`](#{name.lower()}-{field}) | `{type_}` | {comments.cell(comments.words(stated_default(text) or default))} |"
                    for field, type_, default, text in fields]
            out.append("| option | type | default |\n|---|---|---|\n" + "\n".join(rows) + "\n")
            for field, type_, default, text in fields:
                out.append(f"#### `{field}` {{ #{name.lower()}-{field} }}\n")
                out.append(comments.markdown(text) + "\n" if text else f"The option of this name in `Options`, of type `{type_}`.\n")
    return "\n".join(out)
