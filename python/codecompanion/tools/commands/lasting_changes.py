"""Detects commands that change what later commands run; no "always" covers them, not even for the exact command. Pure.

There are two types: programs that install or configure (`grants/never.toml`), and programs or redirections that write a
file that some program runs (`code_files`). The words are read without parsing shell syntax; a false positive costs one
keypress.
"""

from __future__ import annotations

from functools import cache

from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex
from codecompanion.tools.commands import risky_programs
from codecompanion.tools.commands.destructive_commands import loose_commands
from codecompanion.tools.files.code_files import why_it_runs_code

_WRITERS = frozenset(
    "cp mv tee ln link install dd truncate sponge sed gsed perl gawk ed ex touch chmod wget curl".split()
)
_REDIRECTION = regex(r">{1,2}[|&]?\s*(?:'([^'\n]*)'|\"([^\"\n]*)\"|([^\s;&|<>()'\"]+))")
_VALUE = regex(r"\A(?:--?[A-Za-z-]+=|of=|-[A-Za-z])")


@cache
def _never() -> dict[tuple[str, ...], str]:
    kinds = package_table("tools/commands/grants/never.toml")["kind"]
    return {
        tuple(name.split()): kind["why"]
        for kind in kinds
        for line in kind["commands"].split("\n")
        for name in line.split("|")
        if name
    }


def why_no_always(command: str, folder: str, root: str) -> str:
    """Return why the command needs approval every time, or "" if it does not. `folder` is relative to the root."""
    for words in loose_commands(command):
        if why := _why(words, f"{root}/{folder}", root):
            return why
    for target in _REDIRECTION.finditer(command):
        if why := _of_file(next(filter(None, target.groups()), ""), f"{root}/{folder}", root):
            return why
    return ""


def _why(words: list[str], folder: str, root: str) -> str:
    for at, word in enumerate(words):
        name = risky_programs.known_name(word)
        rest = [one for one in words[at + 1 :] if not one.startswith("-")]
        for known in ((name,), (name, *rest[:1]), (name, *rest[:2]), (name, *rest[1:2])):  # git -C x config
            if why := _never().get(known):
                return why
        if name in _WRITERS:
            for operand in words[at + 1 :]:
                if why := _of_file(_VALUE.sub("", operand) if "=" in operand else operand, folder, root):
                    return why
            return ""
        if at == 0 and name not in risky_programs.NEVER and name not in risky_programs.RUNNERS:
            return ""
    return ""


def _of_file(path: str, folder: str, root: str) -> str:
    if not path or path.startswith("-"):
        return ""
    why = why_it_runs_code((path if path.startswith("/") else f"{folder}/{path}",), root)
    return f"it names {path}: {why}" if why else ""
