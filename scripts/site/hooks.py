"""What mkdocs does beyond mkdocs.yml: pages of the site that are made of other files of the tree, and links to these files.

A page in docs/ links to files of the repository by relative paths, so that it can be read in a repository browser. Here each such link
becomes a link to the page of the site that shows that file. If no page shows the file, a listing of the file is added to the site.
"""
import os
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File, InclusionLevel

sys.path.insert(0, str(Path(__file__).resolve().parent))

import cpp_pages  # noqa: E402  after the path is known
import man_page  # noqa: E402
import options_page  # noqa: E402
import plots  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
# Files of the repository and folders that are pages of the site. Pages in docs/ keep their paths.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "python/README.md": "start/python.md",
    "docs/design": "design/index.md",
    "include/braiddb": "reference/cpp/index.md",
    "include/braiddb/options.h": "reference/options.md",
    "docs/man/braiddb.1": "reference/braiddb.md",
    "docs/man/db_bench.1": "reference/db_bench.md",
    "docs/man/braiddb-run.1": "reference/braiddb-run.md",
}
ORIGINS = {page: origin for origin, page in PAGES.items() if origin.endswith(".md")}
PYTHON_API = """# Python API

The package `braiddb`. [First steps in Python](../start/python.md) has examples.

::: braiddb
"""
FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})")
MARKER = re.compile(r'^(\s*```\w+) no-run="[^"]*"', re.M)
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
LANGUAGES = {".h": "cpp", ".cc": "cpp", ".c": "c", ".py": "python", ".toml": "toml", ".json": "json", ".cmake": "cmake"}


def outside_fences(text, change):
    """`text` with `change` applied to each line that is not in a fenced block."""
    lines, fence = [], None
    for line in text.split("\n"):
        match = FENCE.match(line)
        if fence:
            if match and line.strip() == fence:
                fence = None
        elif match:
            fence = match.group(2)
        else:
            line = change(line)
        lines.append(line)
    return "\n".join(lines)


def origin_of(page):
    """The path in the repository of a page of the site."""
    return ORIGINS.get(page, "docs/" + page)


def target_of(origin, link):
    """The file or folder of the repository that a link on the page `origin` leads to, and the anchor; None for links elsewhere."""
    if re.match(r"[a-z]+:|#|/", link):
        return None, ""
    path, _, anchor = link.partition("#")
    return os.path.normpath(os.path.join(os.path.dirname(origin), path)), anchor


def page_of(target):
    """The page or the file of the site that shows a file or a folder of the repository."""
    if target in PAGES:
        return PAGES[target]
    if target.startswith("docs/"):
        return target[len("docs/"):]
    if target.startswith("include/braiddb/"):
        return f"reference/cpp/{Path(target).stem}.md"
    return f"source/{target}.md"


def listing(path):
    language = LANGUAGES.get(Path(path).suffix, "text")
    text = (ROOT / path).read_text(encoding="utf-8")
    return f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n````{language}\n{text.rstrip()}\n````\n"


def design_index():
    rows = []
    for path in sorted((ROOT / "docs/design").glob("*.md")):
        title = path.read_text(encoding="utf-8").split("\n", 1)[0].lstrip("# ")
        number, _, subject = title.partition(": ")
        rows.append(f"| [{number}]({path.name}) | {subject} |")
    head = "# Design notes\n\nWhy each part is as it is, and what was tried.\n\n| note | subject |\n|---|---|\n"
    return head + "\n".join(rows) + "\n"


def linked_files():
    """Files of the repository outside docs/ that a page links to."""
    pages = [*ORIGINS.values(), *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
    found = set()
    for page in pages:
        def note(line):
            for match in LINK.finditer(line):
                target, _ = target_of(page, match.group(2))
                if target and (ROOT / target).is_file():
                    found.add(target)
            return line
        outside_fences((ROOT / page).read_text(encoding="utf-8"), note)
    return {target for target in found if page_of(target).startswith("source/")}


def on_files(files, config):
    made = {page: (ROOT / origin).read_text(encoding="utf-8") for page, origin in ORIGINS.items()}
    made["design/index.md"] = design_index()
    made["reference/python.md"] = PYTHON_API
    made["reference/options.md"] = options_page.page(ROOT)
    for origin, page in PAGES.items():
        if origin.endswith(".1"):
            made[page] = man_page.page((ROOT / origin).read_text(encoding="utf-8"))
    made.update(cpp_pages.pages(ROOT, Path(config.config_file_path).parent / "build/doxygen"))
    for path in linked_files():
        made[page_of(path)] = listing(path)
    for page, text in made.items():
        file = File.generated(config, page, content=text)
        if page.startswith(("source/", "reference/cpp/")) and page != "reference/cpp/index.md":
            file.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(file)
    return files


def on_page_markdown(markdown, page, config, files):
    here = page.file.src_uri
    if here.startswith(("source/", "reference/cpp/")):
        return markdown
    origin = origin_of(here)

    def relink(line):
        def replace(match):
            target, anchor = target_of(origin, match.group(2))
            if not target:
                return match.group(0)
            link = os.path.relpath(page_of(target), os.path.dirname(here) or ".")
            return match.group(1) + link + (f"#{anchor}" if anchor else "") + match.group(3)
        return LINK.sub(replace, line)

    if here == "RESULTS.md":
        markdown = plots.add(markdown, ROOT)
    return MARKER.sub(r"\1", outside_fences(markdown, relink))


def on_post_page(output, page, config):
    """The theme loads the worker of the search for local files from a server. Here the site has one of its own."""
    return re.sub(r'<script src="https://unpkg\.com/iframe-worker/shim"></script>',
                  lambda _: f'<script src="{_url("assets/search_worker.js", page.url)}"></script>', output)


def on_post_template(output, template_name, config):
    """The same for 404.html, which no page of the site links to: the search of a server needs no script."""
    return output.replace('<script src="https://unpkg.com/iframe-worker/shim"></script>', "")


def _url(target, page):
    return os.path.relpath(target, os.path.dirname(page) or ".")
