"""Data types for the permanent grants that an approval question offers; `grant_offer` determines them."""

from __future__ import annotations

import msgspec


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


def exact_key(folder: str, command: str, digest: str) -> str:
    """Return the key of one exact command in one folder, bound to the files that define what it runs."""
    return f"run_command:{folder}\0{command}" + (f"\0{digest}" if digest else "")
