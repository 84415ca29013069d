"""Rows for options of completion at the cursor that the editor reads."""

from __future__ import annotations

from collections.abc import Iterator

from tests.options.ghost_scenes import PAUSE_MS, suggested
from tests.options.row import Row

ON = f"""{{
  completion = {{ enabled = true, debounce = {PAUSE_MS}, adaptive = false }},
  python = {{ host_prog = '/bin/sh' }},
}}"""
"""Switches completion on and sets a Python program."""


def rows() -> Iterator[Row]:
    """Yield all rows of this module."""
    for option, value in {
        "enabled": "false",
        "trigger": "'manual'",
        "debounce": "5000",
        "adaptive": "true",
        "display": "'none'",
        "filetypes": "{ python = false }",
        "max_file_size_mb": "0",
    }.items():
        yield Row(f"completion.{option}", value, suggested, ON)
    for name in "accept accept_line accept_word next previous dismiss complete".split():
        yield Row(f"completion.keymaps.{name}", "'<F5>'", suggested, ON)
