#!/usr/bin/env python3
"""usage: docs_site_test.py

Builds the site with --strict, and checks it: every option, header and verb has its place, no page loads anything from a server, no mark
of the sources is left in a page, and a search finds pages. Where Chromium and Selenium are installed, a browser opens the site from files,
without a network, and searches. Ends with 77 if mkdocs is not installed in build/docs-venv, where scripts/docs installs it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

sys.dont_write_bytecode = True

SOURCE = Path(__file__).resolve().parent.parent.parent
MKDOCS = SOURCE / "build/docs-venv/bin/mkdocs"
PATIENCE = 120  # seconds until a wait is a failure
if not MKDOCS.exists():
    print("mkdocs is not installed in build/docs-venv; scripts/docs installs it")
    sys.exit(77)

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = None
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


class Loads(HTMLParser):
    """What a page loads when it is viewed, and the text that it shows."""

    def __init__(self):
        super().__init__()
        self.found, self.words = [], []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag in ("script", "img", "iframe", "source"):
            self.found.append(values.get("src") or "")
        elif tag == "link" and values.get("rel") not in ("canonical", "next", "prev"):
            self.found.append(values.get("href") or "")

    def handle_data(self, data):
        self.words.append(data)


class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="braiddb-site-"))
        cls.site = cls.folder / "site"
        done = subprocess.run([MKDOCS, "build", "--strict", "--quiet", "--site-dir", cls.site], cwd=SOURCE, capture_output=True, text=True,
                              env=dict(os.environ, NO_MKDOCS_2_WARNING="1"))
        if done.returncode:
            raise AssertionError(f"mkdocs build --strict:\n{done.stdout}{done.stderr}")
        cls.said = done.stdout + done.stderr
        cls.pages = {str(path.relative_to(cls.site)): path.read_text(encoding="utf-8") for path in cls.site.rglob("*.html")}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_builds_without_warnings(self):
        self.assertNotIn("WARNING", self.said)

    def test_nothing_is_loaded_from_a_server(self):
        offences = []
        for name, text in self.pages.items():
            loads = Loads()
            loads.feed(text)
            offences += [f"{name}: {link}" for link in loads.found if re.match(r"(https?:)?//", link)]
        for path in self.site.rglob("*.css"):
            offences += [f"{path.name}: {link}" for link in re.findall(r"url\([\"']?(https?://[^)]+)", path.read_text(encoding="utf-8"))]
        self.assertEqual(offences, [])

    def test_no_marks_of_the_sources_are_left(self):
        self.assertEqual([name for name, text in self.pages.items() if re.search(r"```\w", text)], [])

    def test_every_option_has_its_place(self):
        header = (SOURCE / "include/braiddb/options.h").read_text(encoding="utf-8")
        struct = header.split("struct Options {")[1].split("\n};")[0]
        fields = re.findall(r"^  [^/\s(][^()=;]*?[ *>](\w+)(?: = [^;]*)?;", struct, re.M)
        self.assertGreater(len(fields), 40)
        self.assertEqual([name for name in fields if f'id="options-{name}"' not in self.pages["reference/options.html"]], [])

    def test_every_header_has_its_page(self):
        for path in (SOURCE / "include/braiddb").glob("*.h"):
            name = "reference/options.html" if path.name == "options.h" else f"reference/cpp/{path.stem}.html"
            self.assertIn(name, self.pages)
        if shutil.which("doxygen"):
            self.assertIn("TryCatchUpWithPrimary", self.pages["reference/cpp/db.html"])
            self.assertIn('<h2 id="class-status">', self.pages["reference/cpp/status.html"])

    def test_manual_pages(self):
        manual = (SOURCE / "docs/man/braiddb.1").read_text(encoding="utf-8")
        for term in re.findall(r"^\.TP\n\.B ([a-z]+)$", manual, re.M):
            self.assertIn(f"<dt><b>{term}</b></dt>", self.pages["reference/braiddb.html"])

    def test_results_have_pictures(self):
        self.assertGreater(self.pages["RESULTS.html"].count('<svg class="plot"'), 3)

    def test_the_index_of_the_search_has_all_parts(self):
        index = json.loads((self.site / "search/search_index.json").read_text(encoding="utf-8"))
        found = {entry["location"] for entry in index["docs"]}
        for page in ("index.html", "reference/options.html#options-bound_space", "guides/troubleshooting.html", "reference/python.html"):
            self.assertIn(page, found)

    @unittest.skipUnless(webdriver and CHROMIUM and DRIVER, "Chromium, its driver or Selenium is not installed")
    def test_a_browser_without_a_network_searches_files(self):
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1300,1000",
                         "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self.folder}/chromium"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        browser = webdriver.Chrome(options=options, service=Service(DRIVER))
        try:
            browser.set_page_load_timeout(PATIENCE)
            browser.get(f"file://{self.site}/guides/troubleshooting.html")
            wait = WebDriverWait(browser, PATIENCE)
            field = wait.until(lambda _: next(iter(browser.find_elements(By.CSS_SELECTOR, ".md-search__input")), None))
            wait.until(lambda _: field.is_displayed())
            field.click()
            field.send_keys("zipper")
            links = wait.until(lambda _: [link.get_attribute("href") for link in
                                          browser.find_elements(By.CSS_SELECTOR, ".md-search-result__link")])
            self.assertTrue(any("merge.html" in link for link in links), links)
            if os.environ.get("BRAIDDB_SCREENSHOTS"):
                browser.save_screenshot(os.path.join(os.environ["BRAIDDB_SCREENSHOTS"], "search.png"))
            self.assertEqual([line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"], [])
        finally:
            browser.quit()


if __name__ == "__main__":
    unittest.main(verbosity=2)
