"""The Lua modules that each Lua module requires, parsed from the files without Neovim.

An arrow is every `require("…")`, at the top of a file or inside a function, in code or in a string that Neovim runs
later (`v:lua.require'…'`, `<Cmd>lua require('…')`), and every access to `package.loaded["…"]`. A concatenated name
(`require("codecompanion.chat." .. name)`) points to all modules with that prefix.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ARROW = re.compile(
    r"""(?:\brequire\s*\(?\s*|package\.loaded\s*[\[(]\s*|pcall\(require,\s*)(["'])([\w.]+)\1(\s*\.\.)?"""
)
# The rest of a line after `--`, unless the two dashes are in a string.
COMMENT = re.compile(r"""^((?:[^"'-]|-(?!-)|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')*)--.*$""")


def module_name(path: Path, root: Path) -> str:
    """Return the name by which a file is required (`chat/init.lua` → `codecompanion.chat`)."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "init" else parts)


def required_names(source: str) -> list[tuple[int, str, bool]]:
    """Return the line and name of every arrow in a source text, and whether the name is completed at run time."""
    found = []
    for number, line in enumerate(source.splitlines(), 1):
        code = COMMENT.sub(r"\1", line)
        found += [(number, match[2], bool(match[3])) for match in ARROW.finditer(code)]
    return found


@cache
def arrows(root: Path) -> dict[str, set[str]]:
    """Return the modules below `root` that each module requires; Neovim's own are left out."""
    files = {module_name(path, root): path for path in sorted(root.rglob("*.lua"))}
    graph: dict[str, set[str]] = {}
    for module, path in files.items():
        targets: set[str] = set()
        for _, name, goes_on in required_names(path.read_text(encoding="utf-8")):
            targets |= {known for known in files if known == name or (goes_on and known.startswith(name))}
        graph[module] = targets - {module}
    return graph


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of modules that require each other, directly or by way of others."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for target in sorted(graph[module]):
            if target not in number:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in stack:
                lowest[module] = min(lowest[module], number[target])
        if lowest[module] == number[module]:
            group = set(stack[stack.index(module) :])
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(group)

    for module in sorted(graph):
        if module not in number:
            visit(module)
    return found


ALIAS = re.compile(r"""^\s*local ([\w, ]+?) = (require\(["'][\w.]+["']\)(?:, require\(["'][\w.]+["']\))*)\s*$""")
MEMBER = re.compile(r"""\brequire\s*\(?\s*(["'])([\w.]+)\1\s*\)?\.(\w+)""")
NAMED = re.compile(r"""["']([\w.]+)["']""")


def members(source: str) -> set[str] | None:
    """Return a module's public names, None if its text does not show them (it returns no table `M`)."""
    if not re.search(r"^return M$|^return setmetatable\(M", source, re.MULTILINE):
        return None
    found = set(re.findall(r"^\s*(?:function )?M\.(\w+)\b", source, re.MULTILINE))
    found |= set(re.findall(r'if key == "(\w+)"', source))  # made when it is first read (`config.options`)
    found |= set(re.findall(r"\bM\.(\w+)\s*(?:,\s*M\.\w+\s*)*=(?!=)", source))
    if table := re.search(r"^local M = \{\n(.*?)^\}", source, re.MULTILINE | re.DOTALL):
        found |= set(re.findall(r"^  (\w+) =", table[1], re.MULTILINE))
    return found


def used_members(source: str) -> list[tuple[int, str, str]]:
    """Return line, module and member of every `require("m").x`, and of every `x.y` after `local x = require("m")`."""
    found = []
    aliases: dict[str, str] = {}
    for number, line in enumerate(source.splitlines(), 1):
        code = COMMENT.sub(r"\1", line)
        found += [(number, match[2], match[3]) for match in MEMBER.finditer(code)]
        if alias := ALIAS.match(code):
            aliases |= dict(zip(alias[1].replace(" ", "").split(","), NAMED.findall(alias[2]), strict=False))
            continue
        plain = re.sub(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", '""', code)
        if shadow := re.match(r"\s*local ([\w, ]+?)(?: =|$)", plain):
            for name in shadow[1].replace(" ", "").split(","):
                aliases.pop(name, None)
        for name, module in aliases.items():
            for member in re.findall(rf"(?<![\w.:]){name}\.(\w+)", plain):
                found.append((number, module, member))
    return found
