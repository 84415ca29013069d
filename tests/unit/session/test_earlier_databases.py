"""Chats stored by an earlier version open, display, undo and continue as in that version (R-516, R-545)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from codecompanion.store.sqlite_connection import FILE_NAME
from tests.unit.session.stored.story import EXPECTED, HERE, go_on

FORMATS = sorted(HERE.glob("format_*"))


STORED = [
    pytest.param(folder, policy, id=f"{folder.name}-{policy}")
    for folder in FORMATS
    for policy in json.loads((folder / EXPECTED).read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("folder", "policy"), STORED)
async def test_a_stored_chat_continues_where_it_ended(folder: Path, policy: str, tmp_path: Path) -> None:
    expected = json.loads((folder / EXPECTED).read_text(encoding="utf-8"))[policy]
    (tmp_path / FILE_NAME).write_bytes(gzip.decompress((folder / f"{FILE_NAME}.gz").read_bytes()))
    assert await go_on(tmp_path, policy) == expected
    assert expected["undone"] != expected["redone"], "the story has a change to undo under every policy"
