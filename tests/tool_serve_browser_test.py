#!/usr/bin/env python3
"""usage: tool_serve_browser_test.py

Opens the page of `braiddb serve` in Chromium: it renders, updates, reports no error, asks no other server, can be used by keyboard and
on a phone, and its texts can be read in both themes. Ends with 77 if Chromium, its driver or Selenium is not installed.
Environment: BRAIDDB_TOOL and BRAIDDB_DB_BENCH, the programs. BRAIDDB_SCREENSHOTS, a directory for pictures; default: none are kept.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    print("the Python package selenium is not installed")
    sys.exit(77)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
if not CHROMIUM or not DRIVER:
    print("Chromium or its driver (chromedriver) is not installed")
    sys.exit(77)

PATIENCE = 120  # seconds until a wait is a failure
KEYS = 20000
TOKEN = "a token for the test of the page"

# Texts whose contrast with their background is below 4.5 (WCAG 2, AA), as "text: ratio".
CONTRAST = """
const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
const linear = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
const background = e => {
  for (; e; e = e.parentElement) {
    const color = parse(getComputedStyle(e).backgroundColor);
    if (color.length === 3 || color[3] > 0) return color;
  }
  return [255, 255, 255];
};
const bad = [];
for (const e of document.querySelectorAll('body *')) {
  if (e.closest('svg') || !e.offsetParent || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
  const [a, b] = [luminance(parse(getComputedStyle(e).color)), luminance(background(e))].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(e.textContent.trim().slice(0, 40) + ': ' + ((a + 0.05) / (b + 0.05)).toFixed(2));
}
return bad;
"""

# Elements without a name for a screen reader.
NAMELESS = """
const bad = [];
const text = id => (document.getElementById(id) || {textContent: ''}).textContent.trim();
for (const e of document.querySelectorAll('input, select')) if (!e.labels.length || !e.labels[0].textContent.trim()) bad.push(e.outerHTML);
for (const e of document.querySelectorAll('button')) if (!e.textContent.trim()) bad.push(e.outerHTML);
for (const e of document.querySelectorAll('[role=img], [role=region]')) if (!e.getAttribute('aria-label')) bad.push(e.outerHTML);
for (const e of document.querySelectorAll('section')) if (!text(e.getAttribute('aria-labelledby'))) bad.push(e.outerHTML.slice(0, 80));
for (const e of document.querySelectorAll('th')) if (e.scope !== 'col') bad.push(e.outerHTML);
const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
if (new Set(ids).size !== ids.length) bad.push('an id is there twice');
if (!document.documentElement.lang || !document.title) bad.push('no language or no title');
if (document.querySelectorAll('h1').length !== 1 || document.querySelector('h3')) bad.push('headings');
return bad;
"""


class Server:
    def __init__(self, database, *options):
        command = [os.environ["BRAIDDB_TOOL"], "serve", "--listen", "127.0.0.1:0", *options, database]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.url = line[line.index("http://") :].strip()

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        cls.work = tempfile.TemporaryDirectory(prefix="braiddb-page-", dir=base)
        cls.database = cls.work.name + "/db"
        subprocess.run(
            [os.environ["BRAIDDB_DB_BENCH"], "--benchmarks=fillseq", f"--num={KEYS}", "--value_size=50", f"--db={cls.database}"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        profile = "--user-data-dir=" + cls.work.name + "/profile"
        # Chromium has no sandbox for root, and containers have a small /dev/shm.
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1280,900", profile):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        try:
            cls.browser = webdriver.Chrome(service=Service(DRIVER), options=options)
        except WebDriverException as error:
            cls.work.cleanup()
            print(f"Chromium does not start here: {error}")
            sys.exit(77)
        cls.browser.set_script_timeout(PATIENCE)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.work.cleanup()

    def serve(self, *options):
        server = Server(self.database, *options)
        self.addCleanup(server.stop)
        self.addCleanup(self.browser.get, "about:blank")  # before that, so that no page asks a server that is gone
        self.browser.get_log("browser")  # of an earlier test
        return server.url

    def wait(self, condition, what):
        WebDriverWait(self.browser, PATIENCE, poll_frequency=0.05).until(lambda _: condition(), what)

    def updates(self):
        return int(self.browser.find_element(By.ID, "main").get_attribute("data-updates"))

    def open(self, url):
        self.browser.get(url)
        self.wait(lambda: self.updates() >= 2, "the page does not update")

    def text(self, element):
        return self.browser.find_element(By.ID, element).text

    def picture(self, name):
        if directory := os.environ.get("BRAIDDB_SCREENSHOTS"):
            pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
            self.browser.save_screenshot(f"{directory}/{name}.png")

    def check_console(self):
        bad = [entry for entry in self.browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(bad, [])

    def test_renders_and_updates(self):
        self.open(self.serve())
        self.wait(lambda: self.text("log") != "", "no LOG")
        self.assertIn(self.database, self.text("path"))
        self.assertIn("closed database", self.text("mode"))
        tiles = self.text("tiles")
        for name in ("Entries", "Writes/s", "Back-pressure", "none seen"):
            self.assertIn(name, tiles)
        for table, part in (("space", "Region"), ("dram", "memtable"), ("jobs", "merge"), ("readers", "Recovery"), ("all", "braiddb_")):
            self.assertIn(part, self.text(table))
        self.assertIn("segments", self.text("note-segments"))
        before = self.updates()
        self.wait(lambda: self.updates() >= before + 3, "the page stopped updating")
        self.wait(lambda: self.browser.find_element(By.CSS_SELECTOR, "#chart-backlog path").get_attribute("d") != "", "no line")
        self.picture("page-wide")
        self.check_console()

    def test_asks_no_other_server(self):
        url = self.serve()
        self.open(url)
        asked = self.browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
        self.assertTrue(asked)
        self.assertEqual([name for name in asked if not name.startswith(url)], [])
        loaded = self.browser.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd")
        print(f"the page was loaded in {loaded:.0f} ms")

    def test_names_and_contrast(self):
        self.open(self.serve())
        for theme in ("light", "dark"):
            self.browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
            self.assertEqual(self.browser.execute_script(CONTRAST), [], theme)
            self.picture(f"page-{theme}")
        self.assertEqual(self.browser.execute_script(NAMELESS), [])

    def test_keyboard(self):
        self.open(self.serve())
        body = self.browser.find_element(By.TAG_NAME, "body")
        body.send_keys("p")
        self.assertEqual(self.browser.find_element(By.ID, "pause").get_attribute("aria-pressed"), "true")
        body.send_keys("p")
        self.assertEqual(self.browser.find_element(By.ID, "pause").get_attribute("aria-pressed"), "false")
        body.send_keys("t")
        self.assertIn(self.browser.execute_script("return document.documentElement.dataset.theme"), ("light", "dark"))
        # Keys of db_bench are numbers of eight bytes, the high byte first.
        self.browser.find_element(By.ID, "form").send_keys("hexadecimal")
        self.assertEqual(self.browser.find_element(By.ID, "form").get_attribute("value"), "hex")
        body.send_keys("/")
        focused = self.browser.switch_to.active_element
        self.assertEqual(focused.get_attribute("id"), "prefix")
        focused.send_keys("0000", Keys.ENTER)
        self.wait(lambda: "keys" in self.text("note-keys") or "key," in self.text("note-keys"), "no keys")
        found = len(self.browser.find_elements(By.CSS_SELECTOR, "#found tr"))
        self.assertGreater(found, 1)
        self.browser.find_element(By.ID, "more").send_keys(Keys.ENTER)
        self.wait(lambda: len(self.browser.find_elements(By.CSS_SELECTOR, "#found tr")) > found, "no more keys")
        self.check_console()

    def test_phone(self):
        size = self.browser.get_window_size()
        self.browser.set_window_size(500, 844)
        try:
            # A window of Chromium is wider than a phone, so the page is narrowed.
            url = self.serve()
            self.open(url)
            self.browser.execute_script("document.body.style.width = '390px'")
            self.wait(lambda: self.updates() >= 4, "no update")
            wide = self.browser.execute_script(
                "return [...document.querySelectorAll('section')].filter(e => e.scrollWidth > e.clientWidth + 1 || "
                "e.getBoundingClientRect().right > 391).map(e => e.textContent.slice(0, 60))"
            )
            self.assertEqual(wide, [])
            self.picture("page-phone")
        finally:
            self.browser.set_window_size(size["width"], size["height"])

    def test_no_data_hides_keys(self):
        self.open(self.serve("--no-data"))
        self.wait(lambda: self.text("path") != "", "no path")
        self.assertFalse(self.browser.find_element(By.ID, "keys").is_displayed())

    def test_token(self):
        file = pathlib.Path(self.work.name, "token")
        file.write_text(TOKEN + "\n", encoding="utf-8")
        self.browser.get(self.serve("--token-file", str(file)))
        self.wait(lambda: self.browser.find_element(By.ID, "login").is_displayed(), "no question for the token")
        self.browser.find_element(By.ID, "token").send_keys(TOKEN, Keys.ENTER)
        self.wait(lambda: self.updates() >= 2, "no update with the token")
        self.assertFalse(self.browser.find_element(By.ID, "login").is_displayed())


if __name__ == "__main__":
    unittest.main(verbosity=2)
