"""The arrows between Lua modules: no circles beyond those listed here, and every required module exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lua_arrows import arrows, circles, required_names

REPO = Path(__file__).resolve().parents[2]
LUA = REPO / "lua"

# Modules that are still in a circle. The list can only shrink.
IN_A_CIRCLE = frozenset(
    """
    adapters adapters.resolve chat chat.buffer.folds chat.buffer.paint chat.buffer.text chat.buffer.view
    chat.draw.activity chat.draw.blocks chat.draw.card chat.draw.changes chat.draw.context chat.draw.notices
    chat.draw.put chat.draw.replaced chat.draw.restore chat.draw.runs chat.draw.stream chat.draw.tools
    chat.lists.compact_question chat.lists.grants chat.lists.inspector chat.lists.loading chat.lists.models
    chat.lists.pickers chat.lists.resume_list chat.lists.stored chat.question.approval
    chat.question.attention chat.question.block chat.question.diff_view chat.question.keys
    chat.state.autocmds chat.state.options chat.state.record chat.state.session chat.state.status
    chat.state.yolo chat.ui.actions chat.ui.fork chat.ui.guard chat.ui.keymaps chat.ui.watch chat.window
    chat.window.bar chat.window.covering chat.window.name chat.window.tabline chat.wire.away chat.wire.draft
    chat.wire.events chat.wire.history chat.wire.installing chat.wire.outgoing chat.wire.queue
    chat.wire.redraw chat.wire.unsent cmdwin completion config config.findings config.host files
    files.buffers files.conflict_view files.edit files.list files.marks files.quickfix files.reload
    files.revert files.show host init install process reload reports say screen.choose screen.float slash
    slash.adapter slash.approvals slash.buffer slash.clear slash.compact slash.continue slash.cost
    slash.file slash.fork slash.help slash.image slash.memory slash.model slash.new slash.paths slash.pin
    slash.pins slash.policy slash.recall slash.redo slash.rename slash.restore slash.resume slash.revert
    slash.rules slash.title slash.trace slash.undo slash.unpin
    """.split()
)


def short(module: str) -> str:
    return module.removeprefix("codecompanion").lstrip(".") or "init"


def test_only_listed_modules_are_in_a_circle() -> None:
    """A module that is in a circle cannot be read, tested or moved without all the others of it."""
    found = {short(module) for group in circles(arrows(LUA)) for module in group}
    assert not found - IN_A_CIRCLE, "new in a circle"
    assert not IN_A_CIRCLE - found, "in no circle any more: take them off the list"


def test_every_required_module_exists() -> None:
    """Most requires run long after start-up, on a key or an event: a wrong name would be found there."""
    known = set(arrows(LUA))
    files = [*LUA.rglob("*.lua"), *(REPO / "plugin").rglob("*.lua"), *(REPO / "ftplugin").rglob("*.lua")]
    wrong = [
        f"{path.relative_to(REPO)}:{line} {name}"
        for path in files
        for line, name, goes_on in required_names(path.read_text(encoding="utf-8"))
        if name.startswith("codecompanion")
        and not (any(module.startswith(name) for module in known) if goes_on else name in known)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('local x = require("codecompanion.x")', "codecompanion.x"),
        ('  return require("codecompanion.x").run()', "codecompanion.x"),
        ("foldtext = \"v:lua.require'codecompanion.x'.text()\"", "codecompanion.x"),
        ("return \"<Cmd>lua require('codecompanion.x').run()<CR>\"", "codecompanion.x"),
        ('local x = package.loaded["codecompanion.x"]', "codecompanion.x"),
        ('local ok, x = pcall(require, "codecompanion.x")', "codecompanion.x"),
    ],
)
def test_an_arrow_is_found_wherever_it_stands(source: str, name: str) -> None:
    """Inline requires are arrows too, and so are those in strings that Neovim evaluates."""
    assert required_names(source) == [(1, name, False)]


def test_a_comment_is_no_arrow() -> None:
    """Documentation names modules."""
    assert required_names('---`require("codecompanion.x")` is the way\nlocal y = 1 -- require("codecompanion.x")') == []
    assert required_names('local y = "--" .. require("codecompanion.x")') == [(1, "codecompanion.x", False)]


def test_circles_are_found() -> None:
    """The negative of the check: a circle by way of a third module, and none where arrows only meet."""
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
