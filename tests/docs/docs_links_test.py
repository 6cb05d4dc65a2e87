#!/usr/bin/env python3
"""usage: docs_links_test.py

Checks each link of the documents that leads into the tree: the file exists, and the heading that an anchor names. Also checks that the
pictures are those that scripts/site/diagrams.py draws. Uses no network.
"""

import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import blocks  # noqa: E402  after the path is known

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+?)\s*$")


def outside_blocks(page):
    """Numbered lines of a document that are in no block, without the code within them."""
    fence = None
    for number, line in enumerate((blocks.SOURCE / page).read_text(encoding="utf-8").split("\n"), 1):
        match = blocks.FENCE.match(line)
        if fence:
            fence = None if match and match.group(2) == fence else fence
        elif match:
            fence = match.group(2)
        else:
            yield number, line


def anchors(page):
    """The anchors of a document's headings, as repository browsers make them."""
    found = {}
    for _, line in outside_blocks(page):
        if match := HEADING.match(line):
            text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1)).lower()
            anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            count = found.get(anchor, 0)
            found[anchor] = count + 1
            if count:
                found[f"{anchor}-{count}"] = 1
    return set(found)


class LinksTest(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self):
        offences, known = [], {}
        for page in blocks.pages():
            for number, line in outside_blocks(page):
                for match in LINK.finditer(re.sub(r"`[^`]*`", "code", line)):
                    link = match.group(1)
                    if re.match(r"[a-z]+:", link):
                        continue
                    path, _, anchor = link.partition("#")
                    target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                    if not (blocks.SOURCE / target).exists():
                        offences.append(f"{page}:{number}: {link}: there is no {target}")
                    elif anchor and target.endswith(".md"):
                        if target not in known:
                            known[target] = anchors(target)
                        if anchor not in known[target]:
                            offences.append(f"{page}:{number}: {link}: there is no such heading")
        self.assertEqual(offences, [])

    def test_pictures_are_current_and_used(self):
        done = subprocess.run([sys.executable, "-B", blocks.SOURCE / "scripts/site/diagrams.py", "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        text = "".join((blocks.SOURCE / page).read_text(encoding="utf-8") for page in blocks.pages())
        unused = [path.name for path in (blocks.SOURCE / "docs/images").glob("*.svg") if f"images/{path.name}" not in text]
        self.assertEqual(unused, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
