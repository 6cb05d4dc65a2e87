#!/usr/bin/env python3
"""usage: docs_blocks_test.py

Runs the code blocks of the documents. A block that cannot run says why: ```bash no-run="needs root".

    cpp      a block with main() is a program. Others become functions of one program, with an open database `db`, and `options`,
             `status`, `key`, `value` and `path`. They fail if `status` is an error at their end. Blocks with no-run are compiled too.
    c        a block with main() is a program
    python   runs with the package braiddb, if that is built
    bash     the blocks of a page run one after another in one directory
    console  as bash; lines behind a "$ command" are its output, where … stands for anything

/mnt/pmem0, /mnt/pmem1, /backups and /var/lib are directories of the test. Environment: BRAIDDB_BUILD, the build directory;
BRAIDDB_LIBRARY, the library to link; CXX and CC; BRAIDDB_PYTHON, the interpreter that the package was built for.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import blocks  # noqa: E402  after the path is known

BUILD = Path(os.environ.get("BRAIDDB_BUILD", blocks.SOURCE / "build/release"))
LIBRARY = Path(os.environ.get("BRAIDDB_LIBRARY", BUILD / "lib/libbraiddb.so"))
PLACES = ("/mnt/pmem0", "/mnt/pmem1", "/backups", "/var/lib")
PATIENCE = 120  # seconds until a block hangs
HEADERS = ("algorithm", "cassert", "iostream", "map", "memory", "string", "thread", "vector")
FUNCTION = """
static void Block{number}(const std::string& path) {{
  using namespace braiddb;
  Options options;
  options.create_if_missing = true;
  std::unique_ptr<DB> db;
  Status status = DB::Open(options, path, &db);
  std::string key = "key", value = "value";
  if (status.ok()) status = db->Put(WriteOptions(), key, value);
  Require(status);
  {{
#line {line} "{page}"
{text}
    Require(status);
  }}
}}
"""
PROGRAM = """
{headers}
static void Require(const braiddb::Status& status) {{
  if (status.ok()) return;
  std::cerr << status.ToString() << std::endl;
  std::exit(1);
}}
{functions}
int main(int, char** arguments) {{
  static void (*const kBlocks[])(const std::string&) = {{{names}}};
  kBlocks[std::stoi(arguments[1])](arguments[2]);
}}
"""


class BlocksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        root = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        cls.folder = Path(tempfile.mkdtemp(prefix="braiddb-docs-", dir=root))
        cls.blocks, cls.offences = [], []
        for page in blocks.pages():
            found, offences = blocks.read(page)
            cls.blocks += found
            cls.offences += offences

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def chosen(self, language):
        return [block for block in self.blocks if block.language == language]

    def folder_of(self, name):
        """A directory for a page or a block, with the places that documents name."""
        folder = self.folder / re.sub(r"\W", "-", str(name))
        for place in PLACES:
            (folder / place[1:]).mkdir(parents=True, exist_ok=True)
        return folder

    def placed(self, text, folder):
        return re.sub(rf"(?<![\w.-])({'|'.join(PLACES)})\b", lambda place: f"{folder}{place.group(0)}", text)

    def run_in(self, folder, command, where, **more):
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, **more)
        self.assertEqual(done.returncode, 0, f"{where}:\n{done.stdout}")
        return done.stdout

    def compile(self, name, text, compiler, flags):
        source, program = self.folder / name, self.folder / f"{name}.out"
        source.write_text(text, encoding="utf-8")
        command = [*compiler, str(source), "-I", str(blocks.SOURCE / "include"), *flags, "-o", str(program), str(LIBRARY),
                   f"-Wl,-rpath,{LIBRARY.parent}", "-pthread"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{name}:\n{done.stderr}")
        return program

    def test_every_block_runs_or_says_why_not(self):
        self.assertEqual(self.offences, [])
        for language in ("bash", "cpp"):
            self.assertGreater(sum(not block.reason for block in self.chosen(language)), 5, language)

    def test_cpp_programs(self):
        compiler = [os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Werror"]
        for block in self.chosen("cpp"):
            if "int main(" in block.text:
                with self.subTest(block.where):
                    folder = self.folder_of(block.where)
                    text = f'#line {block.line} "{block.page}"\n{self.placed(block.text, folder)}'
                    program = self.compile(f"program-{len(os.listdir(self.folder))}.cc", text, compiler, [])
                    if not block.reason:
                        self.run_in(folder, [program], block.where)

    def test_cpp_pieces(self):
        pieces = [block for block in self.chosen("cpp") if "int main(" not in block.text]
        names = [*HEADERS, *(f"braiddb/{path.name}" for path in sorted((blocks.SOURCE / "include/braiddb").glob("*.h")) if path.name != "c.h")]
        functions = [FUNCTION.format(number=number, line=block.line, page=block.page, text=self.placed(block.text, self.folder_of(block.where)))
                     for number, block in enumerate(pieces)]
        text = PROGRAM.format(headers="\n".join(f"#include <{name}>" for name in names), functions="".join(functions),
                              names=", ".join(f"Block{number}" for number in range(len(pieces))))
        program = self.compile("pieces.cc", text, [os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Wno-unused"], [])
        for number, block in enumerate(pieces):
            if not block.reason:
                with self.subTest(block.where):
                    folder = self.folder_of(block.where)
                    self.run_in(folder, [program, str(number), str(folder / "db")], block.where)

    def test_c_programs(self):
        compiler = [os.environ.get("CC", "cc"), "-std=c99", "-Wall", "-Werror"]
        for block in self.chosen("c"):
            if block.reason:
                continue
            with self.subTest(block.where):
                self.assertIn("int main(", block.text, f"{block.where}: only whole programs of C run")
                folder = self.folder_of(block.where)
                text = f'#line {block.line} "{block.page}"\n{self.placed(block.text, folder)}'
                program = self.compile(f"program-{len(os.listdir(self.folder))}.c", text, compiler, [])
                self.run_in(folder, [program], block.where)

    def test_python(self):
        if not list((BUILD / "python/braiddb").glob("_braiddb*.so")):
            self.skipTest("the Python package is not built")
        environment = dict(os.environ, PYTHONPATH=str(BUILD / "python"), PYTHONDONTWRITEBYTECODE="1")
        for block in self.chosen("python"):
            if not block.reason:
                with self.subTest(block.where):
                    folder = self.folder_of(block.page)
                    script = ["-c", self.placed(block.text, folder)]
                    self.run_in(folder, [os.environ.get("BRAIDDB_PYTHON", sys.executable), *script], block.where, env=environment)

    def test_shell(self):
        environment = dict(os.environ, PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}")
        for block in self.blocks:
            if block.reason or block.language not in ("bash", "console"):
                continue
            with self.subTest(block.where):
                folder = self.folder_of(block.page)
                if block.language == "bash":
                    script, pattern = block.text, ".*"
                else:
                    script, pattern = parts_of_console(block.text)
                said = self.run_in(folder, ["bash", "-euo", "pipefail", "-c", self.placed(script, folder)], block.where, env=environment)
                said = said.replace(str(folder), "")
                self.assertRegex(said, re.compile(f"\\A{pattern}\\Z", re.S), f"{block.where}: another output")


def parts_of_console(text):
    """The commands of a block of console, and a pattern for all that they print."""
    script, pattern = "", ""
    for line in text.split("\n")[:-1]:
        if line.startswith("$ "):
            script += line[2:] + "\n"
        elif line.startswith("> "):
            script += line[2:] + "\n"
        else:
            pattern += re.escape(line).replace("…", ".*") + "\n"
    return script, pattern


if __name__ == "__main__":
    unittest.main(verbosity=2)
