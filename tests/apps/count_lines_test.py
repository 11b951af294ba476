#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts/count-lines.py takes for a line."""
import importlib.util
import pathlib
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "count-lines.py"
spec = importlib.util.spec_from_file_location("count_lines", SCRIPT)
count_lines = importlib.util.module_from_spec(spec)
spec.loader.exec_module(count_lines)


class Count(unittest.TestCase):
    def test_only_between_markers(self):
        text = "a();\n/* comm:begin */\nb();\nc();\n/* comm:end */\nd();\n/* comm:begin */\ne();\n/* comm:end */\n"
        self.assertEqual(count_lines.count(text), 3)

    def test_no_blank_lines_no_comments(self):
        text = "/* comm:begin */\n\n// text\n/* two\n lines */\nb(); // why\n  \nc(\"// no comment\");\n/* comm:end */\n"
        self.assertEqual(count_lines.count(text), 2)

    def test_broken_markers(self):
        for text in ("a();\n", "/* comm:begin */\na();\n", "/* comm:end */\n",
                     "/* comm:begin */\n/* comm:begin */\n/* comm:end */\n"):
            with self.assertRaises(ValueError):
                count_lines.count(text)


if __name__ == "__main__":
    unittest.main()
