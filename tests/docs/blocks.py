"""The fenced blocks of the documents: where they are, their language, and why a block is not run."""

import re
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})(.*)$")
INFO = re.compile(r'^(\w+)?(?: no-run="([^"]+)")?$')
RUN = ("cpp", "c", "python", "bash", "console")  # languages whose blocks run
SHOWN = ("text",)  # output and pictures


class Block:
    """A fenced block. `line` is that of its first line of content; `reason` says why the block does not run."""

    def __init__(self, page, line, language, reason, lines):
        self.page, self.line, self.language, self.reason = page, line, language, reason
        self.text = "\n".join(lines) + "\n"

    @property
    def where(self):
        return f"{self.page}:{self.line}"


def pages():
    """Paths of the documents, from the top of the tree."""
    listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-co", "--exclude-standard", "*.md"], capture_output=True, text=True).stdout
    found = listed.split("\n") if listed else (str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.md"))
    return sorted(name for name in found if name and not name.startswith(("build/", ".")) and (SOURCE / name).is_file())


def read(page):
    """The blocks of one document, and the offences against the rules for blocks."""
    blocks, offences, fence, before = [], [], None, ""
    for number, line in enumerate((SOURCE / page).read_text(encoding="utf-8").split("\n"), 1):
        match = FENCE.match(line)
        if fence:
            if match and match.group(2) == fence and not match.group(3).strip():
                blocks.append(Block(page, begin, language, reason, lines))
                fence = None
            else:
                lines.append(line)
        elif match:
            fence, begin, lines = match.group(2), number + 1, []
            info = INFO.match(match.group(3).strip())
            language, reason = info.groups() if info else (None, None)
            if language is None:
                offences.append(f'{page}:{number}: a block needs a language, and nothing else but no-run="reason"')
            elif language not in RUN + SHOWN and not reason:
                offences.append(f'{page}:{number}: no test runs a block of {language}: say no-run="reason"')
            elif language in SHOWN and reason:
                offences.append(f"{page}:{number}: a block of {language} is never run")
        elif line.startswith("    ") and not before.strip() and not re.match(r"\s+([-*]|\d+\.)\s", line):
            offences.append(f"{page}:{number}: an indented block: use a fence with a language")
        before = line
    if fence:
        offences.append(f"{page}:{begin - 1}: a block without an end")
    return blocks, offences
