"""Patterns are compiled at their first use; `test_patterns.py` compiles all."""

from __future__ import annotations

import re
import subprocess
import sys

from codecompanion.formats.regex import regex

COUNT = """
import re, sys
compiled = []
make = re._compiler.compile
def count(text, flags=0):
    frame = sys._getframe(1)
    while frame.f_globals["__name__"] in ("re", "re._compiler"):
        frame = frame.f_back
    if frame.f_globals["__name__"].startswith("codecompanion."):
        compiled.append((frame.f_globals["__name__"], text))
    return make(text, flags)
re._compiler.compile = count
import codecompanion.engine.runtime
print(compiled)
"""


def test_a_starting_host_compiles_none_of_our_patterns() -> None:
    """It used to compile 200 patterns, which took 50 ms of the start."""
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_pattern_is_used_like_a_compiled_one() -> None:
    """After the first call the pattern's own method is called."""
    word = regex(r"(w)ord", re.IGNORECASE)
    found = word.search("a WORD")
    assert found is not None
    assert found[1] == "W"
    assert word.sub("x", "word Word") == "x x"
    assert word.pattern == r"(w)ord"
    assert vars(word)["search"].__self__ is re.compile(r"(w)ord", re.IGNORECASE)
    assert regex(rb"\d").findall(b"a1b2") == [b"1", b"2"]
