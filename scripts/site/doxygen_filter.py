#!/usr/bin/env python3
"""usage: doxygen_filter.py HEADER

Doxygen's input filter: prints a header with each comment as a comment of Doxygen's, whose text stays as it is. The first comment of
the file describes the file.
"""
import re
import sys


def convert(text):
    out, block, first = [], [], True
    lines = text.split("\n")
    for index, line in enumerate(lines):
        comment = re.match(r"^(\s*)//(.*)$", line)
        if comment:
            block.append(comment.group(2).removeprefix(" "))
            if index + 1 < len(lines) and re.match(r"^\s*//", lines[index + 1]):
                continue
            # A heading of a group of members, or a comment with nothing below it, describes no declaration.
            if not block[0].startswith("----") and (first or (index + 1 < len(lines) and lines[index + 1].strip())):
                head = ["/**", " @file"] if first else ["/**"]
                out += [*head, " @verbatim", *block, " @endverbatim */"]
            block, first = [], False
            continue
        trailing = re.match(r"^(.*[;,{})]\s*)// (.*)$", line)
        if trailing:
            line = f"{trailing.group(1)}/**< @verbatim {trailing.group(2)} @endverbatim */"
        out.append(line)
    return "\n".join(out)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as source:
        sys.stdout.write(convert(source.read()))
