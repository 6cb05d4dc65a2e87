"""Comments of the public headers as Markdown: paragraphs, and aligned lists as tables."""
import re

LABEL = re.compile(r"\b(Default|Range|Larger|Smaller|REQUIRES|Thread safety|Stored|Errors): ")
TOPIC = re.compile(r"^([A-Z][A-Z ]*[A-Z])\s{2,}(\S.*)$")
ROW = re.compile(r"^(\s{2,})(\S(?:.*?\S)?)\s{2,}(\S.*)$")


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def words(text):
    """Text of a comment, in which * and _ are characters and not marks."""
    text = re.sub(r"`[^`]*`|\b(?:\w+::)+\w+(?:\(\))?|\b\w*_\w+|\bk[A-Z]\w+", lambda name: f"`{name.group(0).strip('`')}`", text)
    parts = re.split(r"(`[^`]*`)", text)
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"(?<!\*)([*_<])(?!\*)", r"\\\1", parts[index])
    return LABEL.sub(r"**\1:** ", "".join(parts))


def markdown(lines):
    """Lines of one comment, without the slashes and the blank behind them."""
    out, paragraph, rows = [], [], []

    def close():
        if paragraph:
            out.append(words(" ".join(paragraph)))
            paragraph.clear()
        if rows:
            table = "\n".join(f"| {cell(words(name))} | {cell(words(text))} |" for name, text in rows)
            out.append(f"| | |\n|---|---|\n{table}")
            rows.clear()

    indent = 0
    for line in lines:
        row = ROW.match(line)
        topic = TOPIC.match(line)
        depth = len(line) - len(line.lstrip())
        if rows and line.strip() and depth > indent:
            rows[-1][1] += " " + line.strip()
        elif row:
            if not rows:
                close()
            indent = len(row.group(1))
            rows.append([row.group(2), row.group(3)])
        elif not line.strip():
            close()
        elif topic:
            close()
            paragraph.append(f"**{topic.group(1)}:** {topic.group(2)}")
        else:
            if rows:
                close()
            paragraph.append(line.strip())
    close()
    return "\n\n".join(out)
