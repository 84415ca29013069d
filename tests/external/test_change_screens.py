"""The look of a proposed change in every theme and size: lines are visible, colours distinct, and nothing is cut off.

Four states (the approval in the chat, the diff that `K` opens, the list of changed files, an inline edit) at three
sizes in four themes; tokyonight needs a clone (see `neovim_plugins.py`) and is skipped without it. The cells of the
screen are checked, with the colours that a user sees there.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from neovim_plugins import on_runtimepath

from harness import REPO, Nvim
from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import Call, reply
from tests.providers.chat.thread import ChatServerThread

pytestmark = pytest.mark.slow("a real Neovim shows every state of a change")

SIZES = [(80, 24), (120, 40), (200, 55)]
THEMES = {
    "dark": "vim.o.background = 'dark'",
    "light": "vim.o.background = 'light'",
    "tokyonight": "vim.cmd.colorscheme('tokyonight')",
    "no true colour": "vim.o.termguicolors = false",
}

TEXT = '''import sys


def total(items):
    """Return the sum of all prices."""
    result = 0
    for item in items:
        result += item
    return result


def tax(value):
    """Return the tax of a value."""
    return value * 0.2
'''
BEFORE = "    result = 0\n    for item in items:\n        result += item\n    return result\n"
AFTER = "    return sum(items, start=0)\n"
IN_PLACE = '```python\ndef total(items, first=0):\n    """Return the sum of all prices."""\n    result = first\n```\n'
ASKED, ASKED_IN_PLACE = "use the sum of Python", "let it begin anywhere"


@dataclass(frozen=True)
class Lines:
    """Texts that appear in one state, each on a line of its own."""

    removed: tuple[str, ...]
    added: tuple[str, ...]
    context: tuple[str, ...]


EDIT = Lines(
    removed=("result = 0", "for item in items:", "result += item", "return result"),
    added=("return sum(items, start=0)",),
    context=("def total(items):", '"""Return the sum of all prices."""'),
)
EDIT_IN_PLACE = Lines(
    removed=("def total(items):", "result = 0"),
    added=("def total(items, first=0):", "result = first"),
    context=('"""Return the sum of all prices."""', "for item in items:"),
)


class Stage:
    """A chat whose model proposes one edit, followed by a file for which the model proposes another."""

    def __init__(self, chat: RealChat, true_colour: bool) -> None:
        """Use a chat whose server answers with the scripted replies."""
        self.chat, self.nvim, self.true_colour = chat, chat.nvim, true_colour

    def show_approval(self) -> None:
        """Send a message and wait for the approval of the edit."""
        self.chat.send(ASKED)
        self.chat.wait_state("awaiting_approval")
        self.nvim.wait_screen(re.escape(EDIT.added[0]))

    def show_diff(self) -> None:
        """Open the complete proposal."""
        self.chat.press_on_approval("K")
        self.nvim.wait_lua("return #vim.api.nvim_list_tabpages() == 2")
        self.nvim.wait_screen(re.escape(EDIT.added[0]))

    def accept(self) -> None:
        """Go back and accept the edit."""
        self.nvim.feed("q")
        self.nvim.wait_lua("return #vim.api.nvim_list_tabpages() == 1")
        self.chat.approve()
        self.chat.wait_state("idle")

    def show_list(self) -> None:
        """List the changed files of the turn."""
        self.nvim.command("CodeCompanionRevert")
        self.nvim.wait_screen("File changes")

    def show_edit_in_place(self) -> None:
        """Start an inline edit of some lines of a file, in a separate window."""
        self.nvim.feed("q")
        self.nvim.command("enew")
        self.nvim.command("edit src/cart.py")
        self.nvim.feed(f":4,6CodeCompanion {ASKED_IN_PLACE}<CR>")
        self.nvim.wait_screen(re.escape(EDIT_IN_PLACE.added[1]))

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return the row and column of each line with this text on the screen.

        A longer line that begins with the text does not count.
        """
        found = []
        for number, row in enumerate(self.nvim.grid.cells):
            characters = [cell for cell, _ in row]
            for column in range(len(characters)):
                rest = "".join(characters[column:])
                if rest.startswith(text) and re.match(r" *$|  | *│", rest[len(text) :]):
                    found.append((number, column))
        return found

    def colours(self, text: str) -> set[tuple[int, int]]:
        """Return the colours at the beginning of a line, for each of its places."""
        return {self.nvim.grid.colours(*place, true_colour=self.true_colour) for place in self.places(text)}

    def contrast(self, text: str) -> float:
        """Return the smallest contrast in a line, 1 to 21 (WCAG 2); 21 if the terminal's colours are unknown."""
        grid = self.nvim.grid
        if not self.true_colour:
            return 21.0
        found = []
        for row, column in self.places(text):
            for offset, character in enumerate(text):
                if character != " ":
                    colours = grid.colours(row, column + offset)
                    pairs = zip(colours, grid.default_colours, strict=True)
                    ink, paper = (luminance(default if one == -1 else rgb(one)) for one, default in pairs)
                    found.append((max(ink, paper) + 0.05) / (min(ink, paper) + 0.05))
        return min(found)


@pytest.fixture(params=sorted(THEMES))
def theme(request: pytest.FixtureRequest) -> str:
    """Return a theme's name."""
    return str(request.param)


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def stage(request: pytest.FixtureRequest, theme: str, tmp_path: Path) -> Iterator[Stage]:
    """Return a stage with that size and theme."""
    look = (on_runtimepath("folke+tokyonight.nvim") if theme == "tokyonight" else "") + THEMES[theme] + "\n"
    call = Call("insert_edit", json.dumps({"path": "src/shop.py", "old_text": BEFORE, "new_text": AFTER}), "call_1")
    with ExitStack() as stack:

        def factory(init: str, **options: Any) -> Nvim:
            return stack.enter_context(Nvim(init=init + look, size=request.param, **options))

        answers = [reply(calls=[call]), reply("Done."), reply(IN_PLACE)]
        server = stack.enter_context(ChatServerThread(answers, key=KEY))
        files = [("src/shop.py", TEXT), ("src/cart.py", TEXT)]
        yield Stage(start_chat(factory, tmp_path, server, files=files), theme != "no true colour")


def test_a_proposed_change_is_visible_in_every_state(stage: Stage) -> None:
    """The changed lines have their colours; no word is cut off and nothing is shown twice."""
    stage.show_approval()
    check(stage, EDIT)
    stage.show_diff()
    check(stage, EDIT)
    stage.accept()
    stage.show_list()
    check_words(float_of(stage.nvim.screen()))
    stage.show_edit_in_place()
    check(stage, EDIT_IN_PLACE)


def check(stage: Stage, lines: Lines) -> None:
    """Check the lines of a change, and the words around them."""
    screen = stage.nvim.screen()
    for text in (*lines.removed, *lines.added):
        assert stage.places(text), f"{text!r} is not shown\n{screen}"
        assert stage.contrast(text) >= 3, f"{text!r} cannot be read: {stage.contrast(text):.1f}\n{screen}"
    context = set().union(*(stage.colours(text) for text in lines.context))
    removed = set().union(*(stage.colours(text) for text in lines.removed))
    added = set().union(*(stage.colours(text) for text in lines.added))
    seen = f"context {context}, removed {removed}, added {added}\n{screen}"
    assert context, seen
    assert not context & added, seen
    assert not context & removed, seen
    assert not added & removed, seen
    check_words(screen)


def rgb(number: int) -> tuple[int, int, int]:
    return number >> 16 & 255, number >> 8 & 255, number & 255


def luminance(colour: tuple[int, int, int]) -> float:
    """Return the relative luminance of a colour, 0 to 1 (WCAG 2)."""
    red, green, blue = (
        part / 255 / 12.92 if part / 255 <= 0.04045 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def check_words(screen: str) -> None:
    """Check that every word is complete, and that nothing is shown twice except the user's own words."""
    words = set(re.findall(r"[A-Za-z]{3,}", screen))
    assert not words - vocabulary(), f"cut: {sorted(words - vocabulary())}\n{screen}"
    own = {line.strip() for text in (TEXT, AFTER, IN_PLACE, ASKED) for line in text.split("\n")}
    rows = [row for row in screen.split("\n") if not row.startswith("## ")]  # the header of a message has its own model
    said = Counter(part for row in rows for part in parts(row) if re.search(r"[A-Za-z]{3}", part) and part not in own)
    twice = [part for part, count in said.items() if count > 1]
    assert not twice, f"said twice: {twice}\n{screen}"


def parts(row: str) -> list[str]:
    """Split a screen row into its texts, without numbers, signs and borders."""
    pieces = re.split(r"\s{2,}| · |[│▎╭╮╰╯─]+", row)
    return [re.sub(r"^[\W\d]+|[\W_]+$", "", piece) for piece in pieces]


@cache
def vocabulary() -> frozenset[str]:
    """Return the words that may be on the screen: from strings in our Lua code, the files and Neovim's ruler."""
    texts = [
        "All Bot Top INSERT",
        TEXT,
        AFTER,
        IN_PLACE,
        ASKED,
        ASKED_IN_PLACE,
        "Loop loop test-model shop.py cart.py Done",
    ]
    for path in (REPO / "lua").rglob("*.lua"):
        texts += re.findall(r'"([^"\n]*)"', path.read_text(encoding="utf-8"))
    return frozenset(re.findall(r"[A-Za-z]{3,}", " ".join(texts)))


def float_of(screen: str) -> str:
    """Return the content inside the border of the float."""
    rows = [match[0] for row in screen.split("\n") if (match := re.search(r"[╭│╰].*[╮│╯]", row))]
    assert rows, screen
    return "\n".join(rows)
