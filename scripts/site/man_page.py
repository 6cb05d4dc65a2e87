"""A manual page in roff as a page of the site. It knows the macros of man(7) that docs/man uses, and refuses others."""
import html
import re
import shlex

FONTS = {"B": "b", "I": "i", "R": ""}


class UnknownMacro(Exception):
    """A line of the page begins with a macro that is not known here."""


def inline(text):
    """Escapes of roff as HTML."""
    text = html.escape(text.replace("\\-", "-").replace("\\(em", "—"), quote=False)
    out, font = "", ""
    for part in re.split(r"(\\f[BIR])", text):
        if re.fullmatch(r"\\f[BIR]", part):
            out += f"</{font}>" if font else ""
            font = FONTS[part[2]]
            out += f"<{font}>" if font else ""
        else:
            out += part.replace("\\\\", "\\")
    return out + (f"</{font}>" if font else "")


def fonts(macro, rest):
    """The line of a macro that prints its words in one font, or in two in turn."""
    lexer = shlex.shlex(rest, posix=True)
    lexer.whitespace_split, lexer.escape, lexer.commenters, lexer.quotes = True, "", "", '"'
    parts = list(lexer)
    if len(macro) == 1:
        parts = [" ".join(parts)]
    out = ""
    for index, part in enumerate(parts):
        font = FONTS[macro[index % len(macro)]]
        out += f"<{font}>{inline(part)}</{font}>" if font else inline(part)
    return out


def page(text):
    title, out, term, code = "", [], False, False
    open_list, open_item, paragraph = False, False, []

    def flush():
        nonlocal paragraph
        if paragraph:
            joined = " ".join(paragraph)
            out.append(joined if open_item else f"<p>{joined}</p>")
            paragraph = []

    def close(end_list):
        nonlocal open_list, open_item
        flush()
        if open_item:
            out.append("</dd>")
            open_item = False
        if open_list and end_list:
            out.append("</dl>")
            open_list = False

    for line in text.split("\n"):
        macro, _, rest = line[1:].partition(" ") if line.startswith(".") else ("", "", line)
        if code and macro != "fi":
            out.append(inline(line))
        elif macro == "TH":
            title = rest.split()[0].lower().replace("\\-", "-")
        elif macro == "SH":
            close(True)
            out.append(f"\n## {rest.capitalize()}\n")
        elif macro == "TP":
            close(False)
            if not open_list:
                out.append("<dl>")
                open_list = True
            term = True
        elif macro == "nf":
            flush()
            out.append("<pre><code>")
            code = True
        elif macro == "fi":
            out.append("</code></pre>")
            code = False
        elif macro == "br":
            paragraph.append("<br>")
        elif macro in ("RS", "RE"):
            pass
        elif macro and set(macro) - set("BIR"):
            raise UnknownMacro(f"{line}: scripts/site/man_page.py does not know this macro")
        elif line.strip():
            printed = fonts(macro, rest) if macro else inline(line)
            if term:
                out.append(f"<dt>{printed}</dt><dd>")
                term, open_item = False, True
            else:
                paragraph.append(printed)
    close(True)
    return f"# {title}\n\nThis page is the manual page `{title}(1)`.\n" + "\n".join(out) + "\n"
