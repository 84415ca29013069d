"""An approval shows exactly what runs: its text can be decoded, and no two texts look the same (8)."""

# ruff: noqa: E501 - tables of attacks are read across
from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codecompanion.tools.builtin import RUN_COMMAND, run_command
from codecompanion.tools.process import Ended
from codecompanion.tools.tool import ToolContext
from tests.attacks.conftest import Tally
from tests.attacks.sizes import amount

sys.path.insert(0, str(Path(__file__).parents[1] / "nvim"))

from harness import Nvim, find_nvim

_SHOWN = re.compile(
    r"<(?P<lines>\d+) lines of (?P<each>(?:<\d+ (?:blank|tab)s?>)+)>|<(?P<empty>\d+) blank lines>|<U\+(?P<code>[0-9A-F]{4,6})>"
    r"|<(?P<byte>[0-9A-F]{2})>|<(?P<blanks>\d+) blanks?>|<(?P<tabs>\d+) tabs?>"
)
_TEXT = """
  local visible, found = require('codecompanion.text.visible_characters'), {}
  for index, text in ipairs(...) do found[index] = visible.text(text) end
  return found
"""
_MEAN = st.sampled_from(
    ["<U+202E>", "<FF>", "<3 blanks>", "<4 blank lines>", "<2 lines of <1 tab>>", "^M", "\r", "\n", "\n" * 5, " " * 60, "\t" * 50,
     "  \n" * 7, "\u202e", "\u200b", "а", "раураl", "сор", "שלום", "مرحبا", "é", "e\u0301", "ｒｍ", "𝗋𝗆", "https://аpple.com/х",
     "<", ">", "U+", "\x1b[2J", "\x00", "\ufeff", "\U000e0041", "ı", "‐", "−", "⁄", "日本", "<U+003C>", " \t" * 30]
)  # fmt: skip
_TEXTS = st.lists(_MEAN | st.text(max_size=6) | st.characters(codec="utf-8"), max_size=8).map("".join)


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nvim]:
    """Return one Neovim, shared by all texts."""
    if find_nvim() is None:
        pytest.skip("no Neovim found: set NVIM_BIN, or run `make setup`")
    with Nvim(tmp_path_factory.mktemp("shown")) as nvim:
        yield nvim


def _shown(editor: Nvim, texts: list[str | bytes]) -> list[str]:
    return list(editor.lua(_TEXT, texts))


def _read_back(shown: str) -> bytes:
    """Return the original of a displayed text."""

    def meant(found: re.Match[str]) -> str:
        match found.lastgroup:
            case "code":
                return chr(int(found["code"], 16))
            case "byte":
                return bytes.fromhex(found["byte"]).decode("utf-8", "surrogateescape")
            case "blanks":
                return " " * int(found["blanks"])
            case "tabs":
                return "\t" * int(found["tabs"])
            case "empty":
                return "\n".join([""] * int(found["empty"]))
        return "\n".join([_SHOWN.sub(meant, found["each"])] * int(found["lines"]))

    return _SHOWN.sub(meant, shown).encode("utf-8", "surrogateescape")


def test_displayed_text_can_be_decoded(editor: Nvim, tally: Tally) -> None:
    """No two commands look alike, whatever characters they contain."""
    tried = 0

    @settings(max_examples=amount(30, full=500), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(_TEXTS.map(lambda text: text.rstrip("\n")), min_size=20, max_size=40))
    def check(texts: list[str]) -> None:
        nonlocal tried
        for text, shown in zip(texts, _shown(editor, list(texts)), strict=True):
            tried += 1
            assert _read_back(shown) == text.encode("utf-8", "surrogatepass"), shown

    check()
    tally("approval texts: shown, read back", tried=tried, held=tried)


def test_bytes_that_are_not_text_can_be_decoded_from_the_display(editor: Nvim) -> None:
    texts: list[str | bytes] = [
        b"rm \xff\xfe",
        b"\xc3(",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"a\x80<80>",
        b"\xe2\x82",
        b"\xe0\x80\x80",
        b"\xc0\xaf",
    ]
    assert [_read_back(shown) for shown in _shown(editor, texts)] == texts


_MISLEADING = [
    "curl https://аpple.com/x", "curl https://xn--pple-43d.com@ехаmple.com", "git clone ssh://gіthub.com/a", "сat /etc/passwd",
    "раураl", "ls שלום", "rm مرحبا.txt", "ｒｍ -rf x", "𝗋𝗆 x", "rm ‐rf", "cat a⁄b", "ls e\u0301", "echo ı", "ping ⅼocalhost", "make tеst",
    "ls Αpp", "ls ℓs", "cat ꓮ", "x ǃ y", "сор\0", "https://bücher.de/", "ls \u0430", "a\u2024b", "ls ⵏ", "cat Ꮪ", "ls \u05d0\u05d1/1",
]  # fmt: skip


@pytest.mark.parametrize("text", _MISLEADING)
def test_misleading_characters_are_escaped(editor: Nvim, text: str, tally: Tally) -> None:
    """Lookalikes in host names and letters that change the writing direction are escaped.

    The rest of a line stays readable.
    """
    shown = _shown(editor, [text])[0]
    held = "<U+" in shown and not re.search("[\u0590-\u08ff]", shown)
    tally("approval texts: letters that mislead", tried=1, held=int(held))
    assert held, shown


@pytest.mark.parametrize(
    "text",
    [
        "git commit -m 'Größe geändert – „x“ → y'",
        "cat résumé.txt",
        "ls 日本語/ファイル",
        "echo привет",
        "ls 한국",
        "echo ✓ 🎉 …",
    ],
)
def test_ordinary_words_of_other_languages_are_readable(editor: Nvim, text: str) -> None:
    assert _shown(editor, [text.replace("„", "“")])[0] == text.replace("„", "“")


@pytest.mark.parametrize(
    "command", ["ls", "ls\n", "ls\n\n", " ls", "ls \\\n", "a\u202eb", "\n\nls\n", "printf 'x\n'\n", "ls\r\n"]
)
def test_the_command_that_is_shown_is_the_one_that_runs(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The shell receives the text of the question, byte for byte."""
    ran: list[str] = []

    async def run(argv: list[str], **_: Any) -> Ended:
        ran.append(argv[2])
        return Ended(0, left_running=False)

    monkeypatch.setattr(run_command, "run_program", run)
    context: Any = ToolContext(
        root=tmp_path,
        resolve=lambda path: tmp_path / path,
        memory_dir=tmp_path,
        snapshot=None,
        read_stored=str,  # type: ignore[arg-type]
    )
    question = RUN_COMMAND.question({"command": command}, context)
    asyncio.run(RUN_COMMAND.run({"command": command}, context))
    assert question is not None
    assert ran == [question.body] == [question.command]
