"""Tests that the pictures in README and documents exist, are small and described, and name only existing things."""

from __future__ import annotations

import re
import struct
from functools import cache
from pathlib import Path

import pytest

from tools.pictures.album import ALBUM, FOLDER, MAX_BYTES, Picture

REPO = Path(__file__).parents[2]
DOCUMENTS = [REPO / "README.md", *sorted((REPO / "doc").glob("*.md"))]
BY_NAME = [pytest.param(picture, id=picture.name) for picture in ALBUM]


@cache
def sources() -> str:
    """Return the source text that contains everything the plugin can show on the screen."""
    paths = [*(REPO / "lua").rglob("*.lua"), *(REPO / "python").rglob("*.py")]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def test_the_folder_contains_exactly_the_pictures_of_the_album() -> None:
    """The folder contains what `make pictures` writes, and is small."""
    assert {path.name for path in FOLDER.iterdir()} == {picture.name for picture in ALBUM}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= MAX_BYTES


@pytest.mark.parametrize("picture", BY_NAME)
def test_a_picture_is_sharp_and_of_its_kind(picture: Picture) -> None:
    """It has twice as many pixels as it is displayed with, in a format that browsers support."""
    head = picture.path.read_bytes()[:24]
    if picture.name.endswith(".png"):
        assert head.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", head[16:24])
    else:
        assert head.startswith(b"GIF89a")
        width, height = struct.unpack("<HH", head[6:10])
    assert 1200 <= width <= 1800
    assert 400 <= height <= 1200


@pytest.mark.parametrize("picture", BY_NAME)
def test_a_picture_names_only_existing_things(picture: Picture) -> None:
    """Keys have an option, commands are declared, and text occurs in the source of the plugin."""
    keymaps = (REPO / "lua/codecompanion/config/options/keymaps.lua").read_text(encoding="utf-8")
    help_text = (REPO / "doc/codecompanion.txt").read_text(encoding="utf-8")
    for name in picture.maps:
        assert re.search(rf'\{{ "{name}", ', keymaps), name
    for command in picture.commands:
        assert f"`{command}" in help_text or f'"{command.lstrip("/")}"' in sources(), command
    for word in picture.words:
        assert word in sources(), word


@pytest.mark.parametrize("picture", BY_NAME)
def test_a_picture_is_described_in_a_sentence(picture: Picture) -> None:
    assert 60 <= len(picture.alt) <= 260
    assert picture.alt.endswith(".")
    assert '"' not in picture.alt


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documents_show_pictures_that_exist(document: Path) -> None:
    """Every picture has a description, and its file name is spelled identically."""
    text = document.read_text(encoding="utf-8")
    for name in re.findall(r"pictures/([\w.-]+)", text):
        assert (FOLDER / name).exists(), name
    assert not re.findall(r"!\[\]\([^)]*pictures/", text), "a picture without a description"
    assert not re.findall(r"<img(?![^>]*alt=\"[^\"]{20,})[^>]*pictures/", text), "a picture without a description"
