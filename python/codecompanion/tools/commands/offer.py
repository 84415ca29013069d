"""Data types for the permanent grants that an approval question offers; `grant_offer` determines them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

_NAMED = 4
"""Maximum number of named files; of more files, one fewer is named and the others are counted."""


class Family(msgspec.Struct, frozen=True, order=True):
    """A named family of commands that may run. If files define it, it applies in one folder while `digest` matches."""

    name: str
    folder: str = ""
    digest: str = ""


class Offer(msgspec.Struct, frozen=True):
    """The grant that a question offers: it needs all `families` (() means that none fits); `covers` is its label.

    `digest` is the hash of the files that define what the command runs, even if only the exact command can be allowed;
    `files` are their names.
    """

    families: tuple[Family, ...] = ()
    covers: str = ""
    digest: str = ""
    files: tuple[str, ...] = ()


def covered(names: Sequence[str], files: Sequence[str] = (), *, is_bound: bool, folder: str = "") -> str:
    """Return the commands that a grant covers and its condition, as the text after "Always allow".

    `names`: of the families. `is_bound`: defining files end the grant; `files` are their names, if known. `folder`: the
    only folder in which it applies, "" = any.
    """
    where = f" in {folder}" if folder else ""
    what = f"{_listed([f'“{name}”' for name in names], 'and')}{where} with harmless options"
    if not is_bound:
        return f"{what}, on workspace files"
    return what + until_changed(files)


def until_changed(files: Sequence[str]) -> str:
    """Return the condition of a grant bound to defining files; () = none exists yet, or their names are unknown."""
    if not files:
        return ", until a file that defines it appears or changes"
    named = [*files[: _NAMED - 1], f"{len(files) - _NAMED + 1} more"] if len(files) > _NAMED else list(files)
    return f", until {_listed(named, 'or')} changes"


def _listed(names: list[str], last: str) -> str:
    return f" {last} ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]


def exact_key(folder: str, command: str, digest: str) -> str:
    """Return the key of one exact command in one folder, bound to the files that define what it runs."""
    return f"run_command:{folder}\0{command}" + (f"\0{digest}" if digest else "")
