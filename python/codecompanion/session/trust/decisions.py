"""Defines the user's trust decisions about folders and files, as stored in `trust.json`. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

MAX_FOLDERS = 2_000
MAX_FILES = 5_000
MAX_BY_COMMANDS = 1_000


class FileHash(msgspec.Struct, frozen=True):
    """A file's real path and the SHA-256 of its content."""

    path: str
    sha256: str


def whole_folder(path: Path) -> FileHash:
    """Return the entry that represents every file below a folder, whatever its content."""
    return FileHash(str(path), "")


class TrustedFolder(msgspec.Struct, frozen=True):
    """A folder that the user trusts, or that `trust.folders` listed when it was first seen.

    `identity` changes if another folder takes the folder's path. `programs` are the files that start programs, as
    trusted: the folder's instructions may change, but not these files (a command in the sandbox can write them).
    """

    path: str
    by: Literal["user", "setup"] = "user"
    identity: str = ""
    programs: tuple[FileHash, ...] = ()
    since: str = ""


class TrustedFile(msgspec.Struct, frozen=True):
    """A file and its content that the user trusts, for chats in one folder."""

    path: str
    sha256: str
    folder: str
    since: str = ""


class Silenced(msgspec.Struct, frozen=True):
    """A folder whose reminder the user has silenced until the waiting files change."""

    folder: str
    waiting: str


class Decisions(msgspec.Struct, frozen=True):
    """All decisions, oldest first.

    `by_commands`: instruction files that a command wrote in a trusted folder; the folder's trust does not cover them,
    because the user has not seen them. If there are too many, a `whole_folder` entry replaces them.
    """

    folders: tuple[TrustedFolder, ...] = ()
    files: tuple[TrustedFile, ...] = ()
    silenced: tuple[Silenced, ...] = ()
    by_commands: tuple[FileHash, ...] = ()

    def folder(self, path: Path) -> TrustedFolder | None:
        """Return the decision about a folder, or None."""
        return next((one for one in self.folders if one.path == str(path)), None)

    def allows(self, folder: Path, path: str, sha256: str) -> bool:
        """Return whether this content of the file was trusted for chats in a folder."""
        return TrustedFile(path, sha256, str(folder)) in (msgspec.structs.replace(one, since="") for one in self.files)

    def knows_other(self, folder: Path, path: str, sha256: str) -> bool:
        """Return whether different content of this file was trusted for chats in a folder."""
        files = [FileHash(one.path, one.sha256) for one in self.files if one.folder == str(folder)]
        decision = self.folder(folder)
        files += decision.programs if decision is not None else ()
        return any(one.path == path and one.sha256 != sha256 for one in files)

    def is_silenced(self, folder: Path, waiting: str) -> bool:
        """Return whether the user has silenced the reminder about these waiting files."""
        return Silenced(str(folder), waiting) in self.silenced

    def with_folder(self, trusted: TrustedFolder) -> Decisions:
        """Return the decisions with a folder trusted; this replaces earlier decisions about it."""
        others = tuple(one for one in self.folders if one.path != trusted.path)
        left = self.by_commands
        if trusted.by == "user":
            left = tuple(one for one in left if not Path(one.path).is_relative_to(trusted.path))
        return msgspec.structs.replace(self, folders=(*others, trusted)[-MAX_FOLDERS:], by_commands=left)

    def with_commands(self, files: Iterable[FileHash]) -> Decisions:
        """Return the decisions with files recorded as written by a command."""
        both = list(dict.fromkeys((*self.by_commands, *files)))
        while len(both) > MAX_BY_COMMANDS:
            folder = Path(both[0].path).parent
            both = [one for one in both if not Path(one.path).is_relative_to(folder)] + [whole_folder(folder)]
        return msgspec.structs.replace(self, by_commands=tuple(both))

    def with_files(self, trusted: Iterable[TrustedFile]) -> Decisions:
        """Return the decisions with files trusted; earlier contents of the same files are no longer trusted."""
        fresh = tuple(trusted)
        named = {(one.folder, one.path) for one in fresh}
        others = tuple(one for one in self.files if (one.folder, one.path) not in named)
        return msgspec.structs.replace(self, files=(*others, *fresh)[-MAX_FILES:])

    def with_silence(self, folder: Path, waiting: str) -> Decisions:
        """Return the decisions with the reminder of a folder silenced until its waiting files change."""
        others = tuple(one for one in self.silenced if one.folder != str(folder))
        fresh = (*others, Silenced(str(folder), waiting))
        return msgspec.structs.replace(self, silenced=fresh[-MAX_FOLDERS:])

    def without(self, path: Path) -> Decisions:
        """Return the decisions except those about a folder, files trusted in it, and the file with this path."""
        text = str(path)
        return Decisions(
            tuple(one for one in self.folders if one.path != text),
            tuple(one for one in self.files if text not in (one.path, one.folder)),
            tuple(one for one in self.silenced if one.folder != text),
            self.by_commands,
        )
