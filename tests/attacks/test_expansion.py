"""Vim must not expand text from a person, a model, a server or a folder, because expansion may run a shell."""

from __future__ import annotations

import re
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
EXPANDS = re.compile(
    r"""\bfn(?:\.|\[["'])(glob|globpath|expand|expandcmd|findfile|finddir|system|systemlist|getcompletion
    |fnameescape|termopen|execute|eval|luaeval)\b | \b(nvim_get_runtime_file|nvim_eval|nvim_command
    |io\.popen|os\.execute)\b
    | \bvim\.cmd\.(edit|split|vsplit|tabedit|read|source|badd|drop|find|grep|make|tabnew)\s*\((?!\s*\)|\{\s*bang) """,
    re.VERBOSE,
)
ALLOWED = {
    ("chat/ui/key_actions.lua", 'vim.fn.expand("<cfile>")'): "the name under the cursor, which is not expanded further",
    (
        "chat/sources/dropped_files.lua",
        'vim.fn.expand("<cfile>")',
    ): "the name under the cursor, which is not expanded further",
    (
        "edit_in_place/ask_for_edit.lua",
        "is_name and vim.fn.getcompletion(event.language",
    ): "letters, digits and _.+- only",
    ("chat/sources/help_tags.lua", "vim.fn.getcompletion("): "tags are searched in files, by a regular expression",
    ("system/manual_tags.lua", 'vim.fn.getcompletion("codecompanion-install", "help")'): "a constant",
    ("chat/sources/help_tags.lua", 'nvim_get_runtime_file("doc/tags*", true)'): "a constant",
    ("commands/conflict.lua", 'nvim_get_runtime_file("lua/codecompanion/init.lua", true)'): "a constant",
    ("system/manual_tags.lua", 'nvim_get_runtime_file("doc/codecompanion.txt", false)'): "a constant",
    ("commands/manual.lua", 'nvim_get_runtime_file("doc/codecompanion.txt", false)'): "a constant",
    (
        "chat/buffer/markdown_colours.lua",
        'nvim_get_runtime_file("parser/" .. lang .. ".*", false)',
    ): "a language Neovim has loaded",
    ("editor_context/items/list_items.lua", 'vim.fn.execute("messages")'): "a constant",
    ("inline/suggestion_highlights.lua", 'nvim_eval("&t_Co")'): "a constant",
    (
        "inline/suggestion_keys.lua",
        "nvim_eval(vim.keycode(before.rhs))",
    ): "a mapping of the user's own, as Neovim runs it",
}


def test_expansion_by_vim_is_used_for_listed_reasons_only() -> None:
    """A new call must be listed with a reason, or use `codecompanion.system.literal_paths`."""
    root, used, wrong = REPO / "lua" / "codecompanion", set[tuple[str, str]](), list[str]()
    for path in sorted([*root.rglob("*.lua"), *(REPO / "plugin").rglob("*.lua"), *(REPO / "ftplugin").rglob("*.lua")]):
        name = path.relative_to(root if root in path.parents else REPO).as_posix()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            code = line.partition(" -- ")[0]
            if EXPANDS.search(code) and not line.lstrip().startswith("--"):
                reasons = [entry for entry in ALLOWED if entry[0] == name and entry[1] in code]
                used.update(reasons)
                if not reasons:
                    wrong.append(f"{name}:{number}: {line.strip()}")
    assert not wrong, "\n".join(wrong)
    assert used == set(ALLOWED)
