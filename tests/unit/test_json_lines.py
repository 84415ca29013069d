"""JSON output of the command line is one line for every reader."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import codecompanion.cli.commands
from codecompanion.cli.json_lines import json_line


@given(st.text('aé\n\r\x85\u2028\u2029\\"\x0b\x0c\x1c', max_size=30))
def test_any_text_is_one_line_and_survives_a_round_trip(text: str) -> None:
    line = json_line({"text": text})
    assert len(line.splitlines()) == 1
    assert json.loads(line) == {"text": text}


def test_every_command_writes_its_json_this_way() -> None:
    for file in Path(codecompanion.cli.commands.__path__[0]).glob("*.py"):
        assert "json.dumps(" not in file.read_text(encoding="utf-8"), file.name
