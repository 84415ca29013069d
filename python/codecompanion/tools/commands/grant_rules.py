"""Defines the families of commands that "always" may cover: program, subcommand and options known to be harmless.

The rules are an allow-list in `grants/*.toml`; see the README there for the format. No family covers anything that is
not listed: other options, abbreviated long options, other types of operands. Pure except for `Places`, which reads the
disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Protocol

import msgspec

from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex

FILES = "apps awk dotnet files git go java javascript lua make others php python ruby rust search".split()
"""Names of the data files, one per group of programs."""


class Places(Protocol):
    """Checks the files named by the words of a command."""

    def is_inside(self, path: str) -> bool:
        """Return whether the path is inside the workspace."""

    def is_there(self, path: str) -> bool:
        """Return whether the path exists in the workspace."""

    def is_readable(self, path: str) -> bool:
        """Return whether the path may be read: in the workspace, not a secret, not inside a repository's git folder."""

    def is_readable_file(self, path: str) -> bool:
        """Return whether the path may be read and is a regular file."""

    def is_readable_tree(self, path: str, *, with_ignored: bool) -> bool:
        """Return whether the path and every file below it may be read."""

    def is_source(self, path: str) -> bool:
        """Return whether the file may be rewritten: it is readable, and no program runs it."""

    def is_git_harmless(self, *, shows_contents: bool) -> bool:
        """Return whether git runs nothing from the repository and, if it shows contents, no secrets are tracked."""


class Rule(msgspec.Struct, frozen=True):
    """The harmless options of a program or subcommand. `flags` take no value; `values`: option → value type.

    `joined`: options whose value must be attached (`--color=always`); `count`: whether a number such as `-5` is
    allowed.
    """

    name: str
    flags: frozenset[str]
    values: dict[str, str]
    joined: dict[str, str]
    count: bool
    operands: tuple[str, ...]
    pattern_options: frozenset[str]
    default_tree: str
    default_with: frozenset[str]
    tree_with: frozenset[str]
    single_dash: bool
    git: str
    per_operand: bool
    defined_by: tuple[str, ...]
    includes: str
    writes: bool
    history: str
    old: frozenset[str]
    prints: frozenset[str]
    quiet: frozenset[str]


_REVISION = regex(r"(?!.*/\.)[A-Za-z0-9_@][A-Za-z0-9_./@^~{}-]*")
_HASH = regex(r"(?i)(?:^|-g|\.\.)[0-9a-f]{4,64}(?:$|\.\.)|\^\{(?!commit\})")
_LINES = regex(r"(?:\d{0,9},)?[+-]?\d{1,9}")
_SCHEME = regex(r"[A-Za-z][A-Za-z0-9+.-]*:(?!:)")
_PATHS = frozenset(("place", "path", "file", "tree", "listed", "source", "test_node"))
_TARGET = regex(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
_SED_ADDRESS = r"(?:\d+|\$|/[^/\\\[{]*/)"
_SED_COMMAND = rf"(?:{_SED_ADDRESS}(?:,(?:{_SED_ADDRESS}|\+\d+))?)?[pdq=]"
_AWK_TEST = r"(?:NR|FNR|NF) ?(?:==|!=|>=|<=|<|>) ?\d+"
_AWK_FIELD = r"(?:\$\d+|\$NF|NR|FNR|NF|\"[^\"\\]*\")"
_AWK_PRINT = rf"\{{ ?print(?: {_AWK_FIELD}(?:,? ?{_AWK_FIELD})*)? ?\}}"
_JQ_NAMES = frozenset(
    "keys length map select to_entries from_entries type sort sort_by unique unique_by group_by has contains not and or"
    " first last add any all empty tostring tonumber join split test startswith endswith ascii_downcase flatten values"
    " min max null true false range reverse if then else end".split()
)
_JQ_NAME = regex(r"(?<![.\w\"$])[A-Za-z_]\w*")
_JQ_FILTER = regex(r"[\w\s.\[\]|,(){}:=<>!+*/-]*")
_KINDS = {
    "number": regex(r"[+-]?\d{1,9}[bkKmMgG]?"),
    "text": regex(r"(?s).*"),
    "word": regex(r"(?!.*\.\.)[A-Za-z0-9_.,:+%^~][A-Za-z0-9_.,:/@+=%^~-]*"),
    "target": _TARGET,
    "expression": regex(r"(?!.*__)[\w \[\]():-]*"),
    "sed": regex(rf"{_SED_COMMAND}(?:; ?{_SED_COMMAND})*"),
    "awk": regex(rf"(?:{_AWK_TEST}(?: ?&& ?{_AWK_TEST})*)? ?(?:{_AWK_PRINT})?"),
    "pretty": regex(r"(?!.*%G)[^\n]*"),
    "duration": regex(r"\d+(?:\.\d+)?(?:ns|us|ms|s|m|h)?"),
    "packages": regex(r"(?:\./)?[A-Za-z0-9_][\w./-]*|\.(?:/\.\.\.)?|\./\.\.\."),
    "label": regex(r"//[\w.:/*+-]*|:?[A-Za-z_][\w.+/-]*(?::[\w.+/-]+)?"),
    "module": regex(r"[A-Za-z_][\w.]*"),
    "byte_size": regex(r"[+-]?\d+[A-Za-z]?"),
}


@cache
def rules() -> dict[str, Rule]:
    """Return the rules of all data files by name (`git log`)."""
    files = [package_table(f"tools/commands/grants/{file}.toml") for file in FILES]
    return {name: _rule(name, table) for file in files for name, table in _named(file)}


def _named(file: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    shared = file.get("shared", {})
    for key, table in file.items():
        if key == "shared":
            continue
        merged = dict(table)
        merged["options"] = " ".join([*(shared[one] for one in table.get("also", ())), table.get("options", "")])
        for name in key.split(" | "):
            yield name, merged


def _rule(name: str, table: dict[str, Any]) -> Rule:
    flags, values, joined, count = set[str](), dict[str, str](), dict[str, str](), False
    for option in table["options"].split():
        if option == "-#":
            count = True
        elif option.endswith("]"):
            written, _, kind = option[:-1].partition("[")
            flags.add(written)
            joined[written] = kind.removeprefix("=")
        elif "=" in option:
            written, _, kind = option.partition("=")
            values[written] = kind
        else:
            flags.add(option)
    return Rule(
        name,
        frozenset(flags),
        values,
        joined,
        count,
        tuple(table.get("operands", "").split()),
        frozenset(table.get("pattern_options", "").split()),
        table.get("default_tree", ""),
        frozenset(table.get("default_with", "").split()),
        frozenset(table.get("tree_with", "").split()),
        table.get("single_dash", False),
        table.get("git", ""),
        table.get("per_operand", False),
        tuple(table.get("defined_by", "").split()),
        table.get("includes", ""),
        table.get("writes", False),
        table.get("history", ""),
        frozenset(table.get("old", "").split()),
        frozenset(table.get("prints", "").split()),
        frozenset(table.get("quiet", "").split()),
    )


def is_duration(word: str) -> bool:
    """Return whether a word is a duration in the syntax of `timeout` and `sleep`."""
    return _KINDS["duration"].fullmatch(word) is not None


def rule_of(words: Sequence[str]) -> tuple[Rule, Sequence[str]] | None:
    """Return the rule with the longest name that matches the start of the command, and the remaining words."""
    for length in range(min(4, len(words)), 0, -1):
        if rule := rules().get(" ".join(words[:length])):
            return rule, words[length:]
    return None


def allows(rule: Rule, words: Sequence[str], places: Places) -> tuple[str, ...] | None:
    """Return the operands if the rule allows every word after the name, otherwise None."""
    read = _read(rule, words)
    if read is None:
        return None
    given, operands, ahead = read
    if not all(_is_of(kind, value, places) for _, kind, value in given):
        return None
    used = {option for option, _, _ in given}
    wanted = rule.operands[1:] if used & rule.pattern_options else rule.operands
    default = rule.default_tree if not rule.default_with or used & rule.default_with else ""
    if used & rule.tree_with:
        wanted, default = tuple(kind.replace("listed", "tree") for kind in wanted), default and "tree"
    if not _fit(wanted, operands, places):
        return None
    if default and len(operands) < len(wanted) and not _is_of(default, ".", places):
        return None
    if rule.history and not _is_known_history(rule, used, operands, ahead, places):
        return None
    if rule.git and not places.is_git_harmless(shows_contents=rule.git == "contents"):
        return None
    return tuple(operands)


def _read(rule: Rule, words: Sequence[str]) -> tuple[list[tuple[str, str, str]], list[str], int | None] | None:
    """Parse the words into options (name, kind, value), operands, and the number of operands before `--`.

    Return None if a word is unknown.
    """
    given, operands, ahead = list[tuple[str, str, str]](), list[str](), None
    rest = iter(words)
    for word in rest:
        if word == "--":
            ahead = len(operands)
            operands += rest
        elif not word.startswith("-") or word == "-":
            operands.append(word)
        elif rule.count and re.fullmatch(r"-[0-9]{1,9}", word):
            continue
        elif (found := _option(rule, word, rest)) is None:
            return None
        else:
            given += found
    return given, operands, ahead


def _is_known_history(rule: Rule, used: set[str], operands: list[str], ahead: int | None, places: Places) -> bool:
    """Return whether git shows only the old contents of named, non-secret files.

    Any older commit may contain a file that has since been removed or ignored, such as `.env`.
    """
    if rule.pattern_options and ahead == 0:
        return False
    if rule.pattern_options and not used & rule.pattern_options:
        operands, ahead = operands[1:], None if ahead is None else ahead - 1
    paths = operands[ahead:] if ahead is not None else [one for one in operands if places.is_there(one)]
    revisions = operands[:ahead] if ahead is not None else [one for one in operands if one not in paths]
    if rule.history != "asked" and any(_HASH.search(one) for one in revisions):
        return False  # it may be the hash of a blob, which git shows regardless of paths
    if used & rule.quiet and not used & rule.prints:
        return True
    reads_old = {
        "always": True,
        "asked": bool(used & rule.prints),
        "revisions": bool(revisions or used & rule.old),
    }[rule.history]
    if not reads_old:
        return True
    if revisions and all(places.is_readable_file(one.partition(":")[2]) for one in revisions):
        return True
    return bool(paths) and "--follow" not in used and all(places.is_readable_file(one) for one in paths)


def _option(rule: Rule, word: str, rest: Iterator[str]) -> list[tuple[str, str, str]] | None:
    """Return the options in one word; a value may be the next word."""
    name, equals, value = word.partition("=")
    if word in rule.flags:
        return [(word, "text", "")]
    if word in rule.values:
        following = next(rest, None)
        return None if following is None else [(word, rule.values[word], following)]
    if word.startswith("--") or rule.single_dash:
        kind = rule.values.get(name) or rule.joined.get(name)
        return [(name, kind, value)] if equals and kind else None
    return _letters(rule, word, rest)


def _letters(rule: Rule, word: str, rest: Iterator[str]) -> list[tuple[str, str, str]] | None:
    """Return the options in joined letters (`-nA3`)."""
    found: list[tuple[str, str, str]] = []
    for at, letter in enumerate(word[1:], 1):
        option, value = f"-{letter}", word[at + 1 :]
        if option in rule.values:
            following = value or next(rest, None)
            return None if following is None else [*found, (option, rule.values[option], following)]
        if option in rule.joined and value:
            return [*found, (option, rule.joined[option], value)]
        if option not in rule.flags:
            return None
        found.append((option, "text", ""))
    return found


def _fit(wanted: Sequence[str], operands: Sequence[str], places: Places) -> bool:
    """Return whether the operands match `wanted`: `text path*` is one string and any number of paths."""
    at = 0
    for kind in wanted:
        bare = kind.rstrip("*?")
        if kind.endswith("*"):
            return all(_is_operand(bare, one, places) for one in operands[at:])
        if at == len(operands):
            if not kind.endswith("?"):
                return False
            continue
        if not _is_operand(bare, operands[at], places):
            return False
        at += 1
    return at == len(operands)


def _is_operand(kind: str, word: str, places: Places) -> bool:
    if word == "" or (kind != "text" and word.startswith(("-", "@"))):
        return False
    return _is_of(kind, word, places)


def _is_of(kind: str, word: str, places: Places) -> bool:
    """Return whether a word is of a kind, or of one of several kinds (`revision|path`)."""
    kinds = kind.split("|")
    return not (_PATHS & set(kinds) and _is_remote(word, places)) and any(
        _is_of_one(one, word, places) for one in kinds
    )


def _is_remote(word: str, places: Places) -> bool:
    """Return whether a program may read a word as a remote location: `https://…`, `npm:…`, `host:file`."""
    return _SCHEME.match(word) is not None and not places.is_there(word)


def _is_of_one(kind: str, word: str, places: Places) -> bool:
    match kind:
        case "place":
            return places.is_inside(word)
        case "path":
            return places.is_readable(word)
        case "file":
            return places.is_readable_file(word)
        case "tree":
            return places.is_readable_tree(word, with_ignored=True)
        case "listed":
            return places.is_readable_tree(word, with_ignored=False)
        case "source":
            return places.is_source(word)
        case "test_node":
            return places.is_readable(word.partition("::")[0])
        case "pathspec":
            return not set(word) & set(":*?[") and places.is_readable(word)
        case "line_range":
            lines, _, path = word.partition(":")
            return _LINES.fullmatch(lines) is not None and (not path or places.is_readable(path))
        case "revision":
            return _is_revision(word, places)
        case "jq":
            bare = re.sub(r'"[^"\\]*"', "", word)
            return bool(_JQ_FILTER.fullmatch(bare)) and set(_JQ_NAME.findall(bare)) <= _JQ_NAMES
        case _ if kind in _KINDS:
            return _KINDS[kind].fullmatch(word) is not None
    return word == kind


def _is_revision(word: str, places: Places) -> bool:
    revision, colon, path = word.partition(":")
    if not _REVISION.fullmatch(revision) or not places.is_readable(revision):
        return False  # git reads an unknown revision as a path
    return not colon or (path != "" and not path.startswith("./") and places.is_readable(path))
