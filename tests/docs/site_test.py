#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documentation site: it builds, its links hold, its check finds links that do not, and a browser shows its pages."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/docs-site.py"
SKIPPED = 77


class Site(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = Path(self.folder.name) / "site"
        built = self.docs_site(str(self.out))
        if built.returncode == SKIPPED:
            print(built.stderr.strip())
            sys.exit(SKIPPED)
        self.assertEqual(built.returncode, 0, built.stderr)

    @staticmethod
    def docs_site(*arguments):
        return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False)

    def break_page(self, name, html):
        page = self.out / name
        text = page.read_text(encoding="utf-8")
        self.assertIn("</body>", text)
        page.write_text(text.replace("</body>", f"{html}</body>"), encoding="utf-8")

    def test_check_finds_what_is_broken(self):
        for name, html, words in (
            ("index.html", '<a href="no-such-page.html">x</a>', "no-such-page.html leads nowhere"),
            ("api.html", '<a href="launch.html#no-such-anchor">x</a>', "names an anchor that is missing"),
            ("cpp.html", '<script src="https://example.org/x.js"></script>', "from elsewhere"),
        ):
            self.break_page(name, html)
            checked = self.docs_site("--check", str(self.out))
            self.assertEqual(checked.returncode, 1)
            self.assertIn(f"{name}: ", checked.stderr)
            self.assertIn(words, checked.stderr)

    def test_browser_shows_every_page(self):
        browser = shutil.which("chromium")
        if not browser:
            self.skipTest("chromium is not installed")
        for page in self.out.glob("*.html"):
            shown = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                                    f"--user-data-dir={self.folder.name}/profile", "--dump-dom", page.as_uri()],
                                   capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(shown.returncode, 0, page.name)
            self.assertIn("<h1", shown.stdout, page.name)
            self.assertNotIn("CONSOLE", shown.stderr, page.name)


if __name__ == "__main__":
    unittest.main()
