"""Shell commands that an allow-list of prefixes may cover: one program with plain arguments. Pure.

`git status` covers `git status --short` and `git status "a b"`, not `git statusx`. A command in which the shell does
more than start one program is covered by nothing: operators, redirections, substitutions, variables, globs, braces,
escapes, assignments, comments, several lines. Quotes are allowed around text the shell takes as it is.
"""

from __future__ import annotations

import re
import unicodedata

_SPECIAL = frozenset(";&|<>()$`\\{}*?[]!\n\r")
_SPECIAL_IN_DOUBLE_QUOTES = frozenset("$`\\!\n\r")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")

RUNNERS = frozenset(
    "sh bash dash zsh ksh fish csh tcsh env sudo doas su xargs eval exec source command builtin nohup nice time timeout"
    " setsid stdbuf parallel watch ssh chroot unshare python python3 node deno bun perl ruby php lua luajit nvim vim"
    " awk gawk sed find fd git npx uvx pipx make".split()
)
"""Programs that run whatever their arguments say: none of them is a prefix without something that says what it runs."""

_NEVER = frozenset("eval exec source . find fd xargs parallel awk gawk ssh su sudo doas".split())
"""Programs whose later arguments can still name any program."""


def words(command: str) -> tuple[str, ...] | None:
    """Return the words of a command the shell would take literally, None when it does anything else with it."""
    found: list[str] = []
    word: str | None = None
    quote = ""
    for char in command.strip(" \t"):
        if quote:
            if char == quote:
                quote = ""
            elif (quote == '"' and char in _SPECIAL_IN_DOUBLE_QUOTES) or char in "\n\r" or _is_odd(char):
                return None
            else:
                word = (word or "") + char
        elif char in "'\"":
            quote, word = char, word or ""
        elif char in " \t":
            if word is not None:
                found.append(word)
            word = None
        elif char in _SPECIAL or _is_odd(char) or (word is None and char in "~#"):
            return None
        else:
            word = (word or "") + char
    if quote:
        return None
    if word is not None:
        found.append(word)
    if not found or not found[0] or _ASSIGNMENT.match(found[0]):
        return None
    return tuple(found)


def _is_odd(char: str) -> bool:
    """Return whether a character does not show, or looks like a blank and is none."""
    return char != " " and char != "\t" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zs", "Zl", "Zp")


def covers(prefix: str, command: str) -> bool:
    """Return whether every word of `prefix` begins `command`, which has to be plain."""
    wanted, given = words(prefix), words(command)
    if wanted is None or given is None or problem_with(prefix):
        return False
    return given[: len(wanted)] == wanted


def problem_with(prefix: str) -> str:
    """Return why the prefix cannot be allowed, one sentence, or ""."""
    found = words(prefix)
    if found is None:
        return f"“{prefix.strip()}” is not a plain prefix: it has operators, variables, wildcards or assignments"
    program = found[0].rpartition("/")[2]
    if program in _NEVER:
        return f"“{program}” can run any program, whatever follows it"
    if program in RUNNERS and not _names_what_runs(found[1:]):
        return f"“{' '.join(found)}” could run any program; add what it is to run, such as “{_example(program)}”"
    return ""


def _names_what_runs(rest: tuple[str, ...]) -> bool:
    """Return whether the words after a program name what it is to run.

    An option before it may take the next word (`git -C /x`), and more options could follow that run anything.
    """
    return bool(rest) and (not rest[0].startswith("-") or (len(rest) > 1 and rest[0] == "-m"))


def _example(program: str) -> str:
    return {"git": "git status", "make": "make test"}.get(program, f"{program} build.sh")


def suggested(command: str) -> str:
    """Return the prefix to offer for a command: the program and its subcommand, "" when no prefix can cover it."""
    found = words(command)
    if found is None:
        return ""
    length = 2 if len(found) > 1 and _PLAIN_WORD.fullmatch(found[1]) else 1
    for count in (length, *range(length + 1, len(found) + 1)):
        prefix = " ".join(_quoted(word) for word in found[:count])
        if not problem_with(prefix):
            return prefix
    return ""


def _quoted(word: str) -> str:
    if word and not any(char in " \t'\"~#" for char in word) and not any(char in _SPECIAL for char in word):
        return word
    return f"'{word}'" if "'" not in word else f'"{word}"'
