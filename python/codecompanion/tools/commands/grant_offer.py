"""Finds the commands that "always" can cover: families (`grant_rules`), each bound to the files that define it.

Reads the disk: call it in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from codecompanion.tools.commands.command_line import SimpleCommand, simple_commands
from codecompanion.tools.commands.defining_files import Defined, defined_by
from codecompanion.tools.commands.destructive_commands import loose_commands
from codecompanion.tools.commands.git_folder import ReadConfig, is_harmless
from codecompanion.tools.commands.grant_rules import Rule, allows, is_duration, rule_of, rules
from codecompanion.tools.commands.offer import Family, Offer, covered
from codecompanion.tools.files.code_files import comparable, why_it_runs_code

_MAX_IN_TREE = 20_000
_WRAPPERS = frozenset(("time", "nice"))
_REPOSITORIES = frozenset((".git", ".hg", ".svn", ".jj", ".bzr", "git~1"))


def never_contains_secret(path: Path) -> bool:
    """Return False: the file contains no secrets. The default of `Workspace.contains_secret`."""
    return False


class Workspace(msgspec.Struct, frozen=True):
    """The workspace: its real root, and functions that detect secrets and read its files and git configuration.

    `contains_secret` returns whether the text of a file contains one.
    """

    root: Path
    is_secret: Callable[[str], bool]
    walk: Callable[[Path], Iterator[Path]]
    environment: Mapping[str, str]
    read_git_config: ReadConfig
    contains_secret: Callable[[Path], bool] = never_contains_secret


def offer_for(command: str, folder: Path, workspace: Workspace) -> Offer:
    """Return the grant that "always" can give for a command in `folder`, a real path in the workspace."""
    line = simple_commands(command)
    found = None if line is None else _of_line(line, folder, workspace)
    if found is not None:
        return found
    return _exact_only(command, folder, workspace)


def _of_line(line: tuple[SimpleCommand, ...], folder: Path, workspace: Workspace) -> Offer | None:
    if line[0].words[0] == "cd" and len(line) > 1:
        entered = _entered(line, folder, workspace)
        if entered is None:
            return None
        folder, line = entered, line[1:]
    families, files = dict[Family, None](), dict[str, None]()
    for command in line:
        known = rule_of(_unwrapped(command.words))
        if known is None:
            return None
        rule, rest = known
        operands = allows(rule, rest, _Disk(folder, workspace))
        if operands is None:
            return None
        name = " ".join((rule.name, *operands)) if rule.per_operand else rule.name
        family = Family(name)
        if rule.defined_by:
            defined = _defined(rule, folder, workspace)
            if defined is None:
                return None
            where = os.path.relpath(folder, workspace.root)
            family = Family(name, "" if where == "." else where, defined.digest)
            files |= dict.fromkeys(defined.files)
        families[family] = None
    granted, named = tuple(families), tuple(files)
    return Offer(granted, covered(granted, named), _digest(granted), named)


def _unwrapped(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that a wrapper such as `timeout 60` starts."""
    while len(words) > 1 and (words[0] in _WRAPPERS or (words[0] == "timeout" and is_duration(words[1]))):
        words = words[2 if words[0] == "timeout" else 1 :]
    return words


def _entered(line: tuple[SimpleCommand, ...], folder: Path, workspace: Workspace) -> Path | None:
    """Return the folder that `cd x && …` enters, or None if that is uncertain."""
    words = line[0].words
    if len(words) != 2 or words[1].startswith("-") or line[1].before != "&&":
        return None
    if any(later.before in ("||", ";", "\n") for later in line[1:]):
        return None  # the rest would run in the old folder if `cd` fails
    if "CDPATH" in workspace.environment and not words[1].startswith(("/", "./", "../")):
        return None
    entered = Path(os.path.realpath(folder / words[1]))
    is_inside = entered == workspace.root or entered.is_relative_to(workspace.root)
    return entered if is_inside and entered.is_dir() else None


def _defined(rule: Rule, folder: Path, workspace: Workspace) -> Defined | None:
    return defined_by(rule.defined_by, folder, workspace.root, workspace.walk, includes=rule.includes)


def _digest(families: Iterable[Family]) -> str:
    return " ".join(family.digest for family in families if family.digest)


def _exact_only(command: str, folder: Path, workspace: Workspace) -> Offer:
    """Return an offer for the exact command only, bound to the files that define any program in it."""
    digests, files = list[str](), dict[str, None]()
    for words in loose_commands(command):
        rule = _loose_rule(words)
        if rule is None:
            continue
        defined = _defined(rule, folder, workspace)
        if defined is not None and defined.digest not in digests:
            digests.append(defined.digest)
            files |= dict.fromkeys(defined.files)
    return Offer(digest=" ".join(digests), files=tuple(files))


def _loose_rule(words: list[str]) -> Rule | None:
    """Return the first rule that has defining files and applies to a program named by a word of the command."""
    for at in range(len(words)):
        known = rule_of(words[at : at + 4]) or _of_program(words[at])
        if known is not None and known[0].defined_by:
            return known[0]
    return None


def _of_program(word: str) -> tuple[Rule, list[str]] | None:
    rule = rules().get(word.rpartition("/")[2])
    return None if rule is None else (rule, [])


def _asks_for_ignored(folder: Path) -> bool:
    """Return whether ignore files make `rg` or `ag` read files that git ignores (`!.env`)."""
    for name in (".ignore", ".rgignore", ".agignore"):
        try:
            lines = (folder / name).read_bytes().split(b"\n")
        except FileNotFoundError:
            continue
        except OSError:
            return True
        if any(line.lstrip().startswith(b"!") for line in lines):
            return True
    return False


class _Disk:
    """Checks paths on disk (`Places`) for one folder of the workspace."""

    def __init__(self, folder: Path, workspace: Workspace) -> None:
        self._folder, self._workspace = folder, workspace

    def is_inside(self, path: str) -> bool:
        """Return whether the path is inside the workspace."""
        return self._real(path) is not None

    def is_there(self, path: str) -> bool:
        """Return whether the path exists in the workspace."""
        real = self._real(path)
        return real is not None and os.path.lexists(self._folder / path)

    def is_readable(self, path: str) -> bool:
        """Return whether the path may be read: in the workspace, not a secret, not inside a repository's git folder."""
        real = self._real(path)
        return real is not None and self._is_public(real, self._folder / path)

    def is_readable_file(self, path: str) -> bool:
        """Return whether the path may be read and is a regular file."""
        real = self._real(path)
        return real is not None and real.is_file() and self._is_public(real, self._folder / path)

    def is_readable_tree(self, path: str, *, with_ignored: bool) -> bool:
        """Return whether the path and every file below it may be read."""
        real = self._real(path)
        if real is None or not self._is_public(real, self._folder / path):
            return False
        if not real.is_dir():
            return True
        looked_at = set[Path]()
        if not with_ignored and any(_asks_for_ignored(above) for above in (real, *real.parents)):
            with_ignored = True
        files = self._all_below(real) if with_ignored else self._workspace.walk(real)
        for number, file in enumerate(files):
            if not with_ignored and file.parent not in looked_at:
                looked_at.add(file.parent)
                if file.parent != real and _asks_for_ignored(file.parent):
                    return self.is_readable_tree(path, with_ignored=True)
            name = os.path.relpath(file, self._workspace.root)
            if number == _MAX_IN_TREE or self._workspace.is_secret(name) or file.name.lower() in _REPOSITORIES:
                return False
        return True

    def is_source(self, path: str) -> bool:
        """Return whether the file may be rewritten: it is readable, and no program runs it."""
        real = self._real(path)
        if real is None or not self._is_public(real, self._folder / path) or real.is_dir():
            return False
        return not why_it_runs_code((str(real), str(self._folder / path)), str(self._workspace.root))

    def is_git_harmless(self, *, shows_contents: bool) -> bool:
        """Return whether git runs nothing from the repository and, if it shows contents, no secrets are tracked."""
        workspace = self._workspace
        is_secret = workspace.is_secret if shows_contents else None
        return is_harmless(self._folder, workspace.root, is_secret, workspace.read_git_config)

    def _real(self, path: str) -> Path | None:
        if "\0" in path or path.startswith("~"):
            return None
        try:
            real = Path(os.path.realpath(self._folder / path))
        except (OSError, ValueError):
            return None
        return real if real == self._workspace.root or real.is_relative_to(self._workspace.root) else None

    def _is_public(self, real: Path, given: Path) -> bool:
        root = str(self._workspace.root)
        for path in (real, given):
            name = comparable(str(path), root)
            if self._workspace.is_secret(name) or _REPOSITORIES & set(name.split("/")):
                return False
        return not (real.is_file() and self._workspace.contains_secret(real))

    def _all_below(self, folder: Path) -> Iterator[Path]:
        """Yield files and folders below the folder; skip the workspace's `.git` if it cannot contain a password."""
        root = self._workspace.root
        for parent, folders, files in os.walk(folder):
            if parent == str(root) and ".git" in folders and self._has_plain_repository():
                folders.remove(".git")
            for name in (*folders, *files):
                yield Path(parent, name)

    def _has_plain_repository(self) -> bool:
        root = self._workspace.root
        return is_harmless(root, root, None, self._workspace.read_git_config)
