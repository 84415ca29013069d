"""The findings of `codecompanion doctor` about an installation."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

IMPORT_ALL = """
import sys
from importlib.abc import MetaPathFinder
from codecompanion.cli.commands import doctor

class Damaged(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise SyntaxError("a file was cut")

sys.modules.update(dict.fromkeys(("mcp", "openai", "anthropic", "numpy", "onnxruntime", "tokenizers")))
sys.meta_path.insert(0, Damaged())
finding = doctor.import_all()
print(finding.ok, finding.text)
"""


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        ("", r"True all \d{3} can be imported"),
        (
            "codecompanion.tools.builtin.grep_search",
            r"False 1 cannot .*\.grep_search: SyntaxError: a file was cut",
        ),
        ("codecompanion.reports", r"False \d+ cannot .*codecompanion\.reports: SyntaxError: a file was cut.*"),
    ],
)
def test_a_damaged_module_is_named_before_it_is_needed(damaged: str, expected: str) -> None:
    """Packages of extras may be missing, because no module imports them at the top."""
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL, damaged], capture_output=True, text=True, check=False)
    assert re.fullmatch(expected, done.stdout.strip()), done.stdout + done.stderr
