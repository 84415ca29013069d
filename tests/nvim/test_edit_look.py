"""The screen shows the buffer's lines, whatever an edit in place draws between them."""

from __future__ import annotations

import re

from test_edit_in_place import code, desk
from tests.providers.chat.answers import reply

__all__ = ["desk"]

SHOP = [
    "import sys",
    "",
    "",
    "def total(items):",
    "    result = 0",
    "    for item in items:",
    "        result += item",
    "    return result",
    "",
    "",
    "def tax(value):",
    "    return value * 0.2",
    "",
    "",
    "def grand_total(items):",
    "    value = total(items)",
    "    return value + tax(value)",
    "",
    "print(grand_total([1, 2]))",
    "# end",
]
CHANGED = ["def total(items, start=0):", "    result = start", *SHOP[5:9], "", ""]
NUMBERED = re.compile(r"([ \d]\d+)(?: (.*))?$")


def numbered(screen: str) -> dict[int, str]:
    """Return the numbered rows above the status line, which must be in order."""
    rows = [NUMBERED.match(row[1:] if row.startswith(" ") else row) for row in screen.split("\n")[:-2]]
    found = [(int(row[1]), (row[2] or "").removesuffix("  −").rstrip()) for row in rows if row]
    assert [number for number, _ in found] == list(range(1, len(found) + 1)), screen
    return dict(found)


def test_the_screen_shows_the_buffers_lines_after_undo_and_redo(desk):
    """Neovim moves virtual lines with the undone text, and does not redraw them on its own."""
    here = desk(reply(code(CHANGED)))
    here.nvim.command("set number")
    here.edit("4,9CodeCompanion let it begin anywhere", lines=SHOP, name="shop.py")
    here.wait_proposed(2)
    for key, changes in (("]c", 2), ("Vg2", 1), ("u", 2), ("<C-r>", 1), ("u", 2), ("<C-r>", 1), ("]cVg2", 0), ("u", 1)):
        here.nvim.feed(key)
        here.wait_proposed(changes) if changes else here.wait_over()
        screen = here.nvim.screen()
        lines = here.lines()
        for number, text in numbered(screen).items():
            assert text == lines[number - 1], (key, screen)
        here.nvim.command("redraw!")
        assert here.nvim.screen().split("\n")[:-2] == screen.split("\n")[:-2], key
