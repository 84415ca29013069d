"""Guards the workspace: every path of a tool, rule or attachment becomes an absolute path inside it, or an error.

Symbolic links are resolved before the check, so that neither `..` nor a link nor `/proc/self/root` leads out. A link
that is replaced between this check and opening the file is not detected here (`text_files.read_bytes` refuses a link in
the last part of the path).
"""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

from codecompanion.errors import OutsideWorkspace, ToolError

NOT_INDEXED = "{root} is not a project, so it is not indexed."


def is_project(root: Path) -> bool:
    """Return whether a folder may be searched as a whole: it is neither a home folder nor a parent of one."""
    here = Path(os.path.realpath(root))
    if here == Path(here.anchor):
        return False
    try:
        home = Path(os.path.realpath(Path.home()))
    except RuntimeError:  # neither HOME nor the system knows one
        return True
    return here != home and here not in home.parents


class Workspace:
    """The folder that tools may access; relative paths start there."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def resolve(self, path: str) -> Path:
        """Return the real absolute path (`~` and `~/…` are the home folder). It may not exist.

        If the path exists only in another Unicode normal form, that form is used: models write composed letters, while
        a file from a Mac may be named with decomposed letters.

        Raises:
            OutsideWorkspace: the path leads out of the workspace; the message names both.
            ToolError: the path is empty, contains a NUL, is too long, or is a cycle of links.
        """
        real = self._inside(path, path)
        if not os.path.lexists(real):
            for form in ("NFC", "NFD"):
                other = unicodedata.normalize(form, path)
                if other != path and os.path.lexists(found := self._inside(other, path)):
                    return found
        return real

    def relative(self, path: Path) -> str:
        """Return the path as displayed: relative to the root with `/`, or absolute if it is outside."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix()

    def _inside(self, path: str, shown: str) -> Path:
        real = _real_path(path, self.root, shown)
        if real == self.root or self.root in real.parents:
            return real
        # On a file system that ignores case, or behind a bind mount, the same folder has other spellings.
        for ancestor in (real, *real.parents):
            if _same_folder(ancestor, self.root):
                return self.root / real.relative_to(ancestor)
        raise OutsideWorkspace(f"{shown} is outside the workspace {self.root}. Use a path inside it.")


def _real_path(path: str, root: Path, shown: str) -> Path:
    if not path.strip():
        raise ToolError("The path is empty; give a path relative to the workspace.")
    if "\0" in path:
        raise ToolError(f"The path {shown!r} contains a NUL character.")
    if path == "~" or path.startswith("~/"):
        path = str(Path.home()) + path[1:]
    try:
        real = os.path.realpath(root / path)
        status = _status(real)
    except (OSError, ValueError, RuntimeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is not a valid path"
        raise ToolError(f"The path {_quoted(shown)} cannot be used: {cause}.") from error
    # `realpath` stops at a cycle of links and leaves the rest of the path unchanged.
    if status is not None and any(part.is_symlink() for part in (Path(real), *Path(real).parents)):
        raise ToolError(f"The path {_quoted(shown)} is a loop of symbolic links.")
    return Path(real)


def _status(path: str) -> os.stat_result | None:
    """Return the path's own status, or None if it does not exist; raises OSError for impossible names."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def _quoted(path: str) -> str:
    return repr(path if len(path) <= 200 else path[:200] + "…")


def _same_folder(path: Path, root: Path) -> bool:
    try:
        return path.samefile(root)
    except (OSError, ValueError):
        return False
