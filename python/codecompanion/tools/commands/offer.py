"""Data types for the permanent grants that an approval question offers; `grant_offer` determines them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.wire.events import GrantScope

_NAMED = 4
"""Maximum number of named files; of more files, one fewer is named and the others are counted."""


class Family(msgspec.Struct, frozen=True, order=True):
    """A named family of commands that may run. If files define it, it applies in one folder while `digest` matches."""

    name: str
    folder: str = ""
    digest: str = ""


class Offer(msgspec.Struct, frozen=True):
    """The grant that a question offers: it needs all `families` (() means that none fits); `covers` is its scope.

    `digest` is the hash of the files that define what the command runs, even if only the exact command can be allowed;
    `files` are their names.
    """

    families: tuple[Family, ...] = ()
    covers: GrantScope = GrantScope()
    digest: str = ""
    files: tuple[str, ...] = ()


def covered(families: Sequence[Family], files: Sequence[str] = ()) -> GrantScope:
    """Return the commands that grants of these families cover.

    `files`: the names of the files that define the families, if known.
    """
    found = []
    if free := [f"“{family.name}”" for family in families if not family.digest]:
        found.append(f"{_listed(free, 'and')} on files of this project, with any options")
    if bound := [f"“{family.name}”" for family in families if family.digest]:
        where = next((f" in {family.folder}" for family in families if family.folder), "")
        found.append(f"{_listed(bound, 'and')}{where} with any options")
    runs = "run other programs" if bound else "run programs or write files"
    return GrantScope("; ".join(found), f"options that {runs} still ask", until_changed(files) if bound else "")


def exactly(command: str, folder: str, digest: str, files: Sequence[str]) -> GrantScope:
    """Return the scope of the grant of one command."""
    where = f" in {folder}" if folder else ""
    return GrantScope(f"exactly “{command}”{where}", until=until_changed(files) if digest else "")


def until_changed(files: Sequence[str]) -> str:
    """Return the end of a grant bound to defining files; () = none exists yet, or their names are unknown."""
    if not files:
        return "until build or settings files (Makefile, pyproject.toml …) change"
    named = [*files[: _NAMED - 1], f"{len(files) - _NAMED + 1} more"] if len(files) > _NAMED else list(files)
    return f"until {_listed(named, 'or')} changes"


def _listed(names: list[str], last: str) -> str:
    return f" {last} ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]


def exact_key(folder: str, command: str, digest: str) -> str:
    """Return the key of one exact command in one folder, bound to the files that define what it runs."""
    return f"run_command:{folder}\0{command}" + (f"\0{digest}" if digest else "")
