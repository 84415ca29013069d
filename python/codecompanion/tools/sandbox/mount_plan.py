"""Determines a sandbox's mounts for a workspace, and so the paths that a command can read and write. Changes nothing.

The paths are data (`hidden_paths.toml`). Of two nested paths the deeper one wins: a workspace inside a hidden folder is
visible (except among keys), a hidden folder inside the workspace is not. Paths listed by the user override both.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from codecompanion.formats.package_table import package_table

Operation = Literal["write", "read", "empty_folder", "empty_file", "overlay"]
_XDG: Final = {"XDG_STATE_HOME": ".local/state", "XDG_CACHE_HOME": ".cache"}
_RANK: Final[dict[Operation, int]] = {"overlay": 0, "empty_folder": 1, "empty_file": 1, "read": 2, "write": 3}
MAX_SOCKETS = 200
"""Maximum number of other programs' sockets to hide; each costs a mount in every command."""

_MAX_MODULE_FOLDERS = 1000
_MAX_PARTS = 200


class Mount(msgspec.Struct, frozen=True):
    """The content of a path in the sandbox: a folder on the disk (`source`), nothing, or a private copy."""

    operation: Operation
    path: str
    source: str = ""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that determine the files a command can reach.

    `private` is a folder for this workspace, outside all other paths; its `tmp` becomes the command's `/tmp`. `hidden`
    lists the plugin's folders; `write` and `read` list the user's paths.
    """

    root: Path
    home: Path
    private: Path
    environment: Mapping[str, str]
    hidden: tuple[Path, ...] = ()
    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    needed: tuple[Path, ...] = ()


@cache
def _table() -> dict[str, Any]:
    return package_table("tools/sandbox/hidden_paths.toml")


def variables_left_out() -> frozenset[str]:
    """Return the variables to unset: they point to programs that a command cannot reach."""
    return frozenset(_table()["variables"])


def variables_without_network() -> dict[str, str]:
    """Return the variables that turn off retries of downloads."""
    return dict(_table()["without_network"])


def cache_variables(places: Places, temporary: str, *, overlays: bool) -> dict[str, str]:
    """Return the variables that move caches below `temporary` if the caches in the home folder are not writable.

    Without overlays, all `only_caches` move; other caches stay readable for the downloads in them.
    """
    return {
        variable: f"{temporary}/caches/{variable}"
        for name, variables in _table()["cache_variables"].items()
        for variable in variables.split()
        if variable not in places.environment
        and ((not overlays and name in _table()["only_caches"]) or not _existing([name], places))
    }


def hidden_places(places: Places) -> list[Path]:
    """Return the real paths of existing hidden files and folders, except those that the user lists."""
    found = set(_real(_hidden_names(places)))
    listed = {*_listed(places.write, places), *_listed(places.read, places)}
    return sorted(found - listed)


def is_hidden(name: str, places: Places) -> bool:
    """Return whether a path named in the table exists and is hidden, either itself or because of a parent folder."""
    hidden = set(hidden_places(places))
    return any(not hidden.isdisjoint((path, *path.parents)) for path in _existing([name], places))


def _hidden_names(places: Places) -> list[Path]:
    names = [name for section in ("keys", "profiles", "histories", "system") for name in _table()[section]]
    runtime = places.environment.get("XDG_RUNTIME_DIR", "")
    own = [*places.hidden, *([Path(runtime)] if runtime else [])]
    return [*(path for name in names for path in _expanded(name, places)), *own]


def _links(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the symlinks in those of the paths that exist, each at its real location."""
    for path in filter(os.path.exists, paths):
        here, left = Path("/"), [*reversed(path.parts[1:])]
        for _ in range(_MAX_PARTS):
            if not left:
                break
            here = Path(os.path.normpath(here / left.pop()))
            if here.is_symlink():
                yield here
                target = here.readlink()
                left += [part for part in reversed(target.parts) if part != "/"]
                here = Path("/") if target.is_absolute() else here.parent


def rights_in_root(places: Places) -> Literal["write", "read", ""]:
    """Return the command's rights in its workspace: read-only if it contains the home folder or the plugin's folder.

    With write access the command could replace a folder that contains hidden paths with its own, or replace a symlink
    that leads to a hidden path. A workspace among the user's keys, which a symlink may point to, stays hidden.
    """
    root = places.root.resolve()
    keys = {*_existing(_table()["keys"], places), *_real(places.hidden)} - set(_listed(places.read, places))
    if any(root == place or place in root.parents for place in keys):
        return ""
    own = [places.home.resolve(), *_real(places.hidden)]
    if any(root == place or root in place.parents for place in own):
        return "read"
    return "read" if any(root in link.parents for link in _links(_hidden_names(places))) else "write"


def written_places(places: Places, *, with_mounts: bool = True) -> list[str]:
    """Return the real paths that a command may write to: its workspace and the paths that the user lists.

    Without mounts a subfolder cannot be excluded, so a workspace that contains a hidden path is read-only.
    """
    root, hidden = str(places.root.resolve()), () if with_mounts else hidden_places(places)
    writes = rights_in_root(places) == "write" and not any(_is_below(str(path), root) for path in hidden)
    return [*([root] if writes else []), *listed_to_write(places)]


def mounts(places: Places, *, overlays: bool) -> tuple[Mount, ...]:
    """Return the mounts, parent folders first."""
    found = dict[str, Mount]()

    def add(operation: Operation, path: Path, source: Path | str = "") -> None:
        mount = Mount(operation, str(path), str(source))
        known = found.get(mount.path)
        if known is None or _RANK[operation] >= _RANK[known.operation]:
            found[mount.path] = mount

    if overlays:
        for path in _existing(_table()["caches"], places):
            add("overlay", path, places.private / "caches" / str(path).strip("/").replace("/", "%"))
    for path in hidden_places(places):
        add("empty_folder" if path.is_dir() else "empty_file", path)
    for path in _other_sockets():
        add("empty_file", path)
    for path in _existing(_table()["needed"], places):
        add("read", path, path)
    for path in (*_real(places.needed), *_listed(places.read, places)):
        add("read", path, path)
    for folder in ("/tmp", "/var/tmp"):  # noqa: S108 what is at these paths inside
        if Path(folder).is_dir():
            add("write", Path(folder).resolve(), places.private / "tmp")
    root, rights = places.root.resolve(), rights_in_root(places)
    if rights == "read" and str(root) != "/":  # the whole disk is readable
        add("read", root, root)
    for name in written_places(places):
        add("write", Path(name), name)
    for path, writes in repository_places(root) if rights == "write" else ():
        add("write" if writes else "read", path, path)
    for folder in _folders_above(found.values()):
        found.setdefault(folder, Mount("write", folder, folder))
    ordered = sorted(found.values(), key=lambda mount: (mount.path.count("/") if mount.path != "/" else 0, mount.path))
    return tuple(mount for mount in ordered if not _is_useless(mount, ordered))


def _folders_above(mounts: Iterable[Mount]) -> list[str]:
    """Return the folders between a writable path and any hidden or read-only path inside it.

    Mounting them prevents a command from moving them; otherwise the next command would find the hidden path under
    another name.
    """
    kept = [mount for mount in mounts if mount.operation != "overlay"]
    closed = [mount.path for mount in kept if mount.operation == "empty_folder"]
    above = {
        str(parent)
        for path in (mount.path for mount in kept)
        for top in (mount.path for mount in kept if mount.operation == "write" and mount.source == mount.path)
        if _is_below(path, top)
        for parent in Path(path).parents
        if _is_below(str(parent), top)
    }
    return sorted(path for path in above if not any(_is_below(path, folder) for folder in closed))


def _is_useless(mount: Mount, all_of_them: Sequence[Mount]) -> bool:
    """Return whether a mount would cover a required path, or repeats its parent mount."""
    inside = [one for one in all_of_them if _is_below(one.path, mount.path)]
    if mount.operation == "overlay":
        return any(one.operation in ("write", "read", "overlay") for one in inside) or any(
            _is_below(mount.path, one.path) for one in all_of_them
        )
    above = [one for one in all_of_them if _is_below(mount.path, one.path)]
    nearest = above[-1] if above else None
    # A hidden folder hides its whole subtree; a private folder's subtree does not exist in the sandbox.
    hides = mount.operation in ("empty_folder", "empty_file")
    return hides and nearest is not None and (
        nearest.operation == "empty_folder" or (nearest.operation == "write" and nearest.source != nearest.path)
    )  # fmt: skip


def _is_below(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def repository_places(root: Path) -> list[tuple[Path, bool]]:
    """Return each path of the workspace's repository, and whether commands may write there.

    A command may commit, but not choose the programs that git runs later. The repository of a linked worktree is
    elsewhere: it counts only if that repository lists this workspace as its worktree, because a `.git` file alone could
    name any folder.
    """
    git = root / ".git"
    if git.is_symlink():
        return []
    found: list[tuple[Path, bool]] = []
    if git.is_dir():
        common = git
        found.append((git, True))  # mounted, so that it cannot be moved aside
    else:
        folder = _linked(git)
        if folder is None:
            return [(git, False)] if git.is_file() else []
        common = folder.parent.parent
        found += [(git, False), (common, True)]
    modules = _submodules(common / "modules")
    if modules is None:
        found.append((common / "modules", False))
    for repository in (common, *(modules or ()), *common.glob("worktrees/*")):
        found += [(path, False) for name in _table()["repository"] if _is_real(path := repository / name)]
    return found


def _submodules(folder: Path) -> list[Path] | None:
    """Return the repositories of submodules; their names may contain slashes, and they may have submodules.

    Return None if there are too many folders to search.
    """
    found, left = list[Path](), [folder]
    for _ in range(_MAX_MODULE_FOLDERS):
        if not left:
            return found
        here = left.pop()
        if not _is_real(here):
            continue
        if (here / "config").is_file():  # commands can neither remove nor move it
            found.append(here)
            left.append(here / "modules")
        elif here.is_dir():
            left += here.iterdir()
    return None


def _linked(git: Path) -> Path | None:
    try:
        if not git.is_file() or git.stat().st_size > 10_000:
            return None
        kind, _, named = git.read_text("utf-8", "replace").strip().partition(": ")
        folder = Path(os.path.realpath(git.parent / named))
        back = Path((folder / "gitdir").read_text("utf-8", "replace").strip())
        is_ours = kind == "gitdir" and folder.parent.name == "worktrees" and back.resolve() == git.resolve()
    except (OSError, ValueError):
        return None
    return folder if is_ours else None


def _is_real(path: Path) -> bool:
    """Return whether the path exists and contains no symlink: mounting a symlink would expose its target."""
    return path.exists() and path.resolve() == path


def _existing(names: Iterable[str], places: Places) -> list[Path]:
    return [path for name in names for path in _real(_expanded(name, places))]


def _listed(names: Iterable[str], places: Places) -> list[Path]:
    return _real(
        path if path.is_absolute() else places.root / path for name in names for path in _expanded(name, places)
    )


def _expanded(name: str, places: Places) -> list[Path]:
    for variable, folder in _XDG.items():
        if name.startswith(f"${{{variable}}}"):
            value = places.environment.get(variable, "")
            start = value if Path(value).is_absolute() else str(places.home / folder)
            name = start + name[len(variable) + 3 :]
    if name == "~" or name.startswith("~/"):
        name = str(places.home) + name[1:]
    path = Path(name)
    return sorted(path.parent.glob(path.name)) if "*" in path.name else [path]


def _real(paths: Iterable[Path]) -> list[Path]:
    """Return the real paths of those that exist, except the root of the file system, `/`."""
    found = []
    for path in paths:
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError):
            continue
        if str(real) != "/":
            found.append(real)
    return found


def _other_sockets() -> list[Path]:
    """Return the sockets on which programs of this system listen, as the kernel lists them."""
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "replace").splitlines()[1:]
    except OSError:
        return []
    names = {line[line.find("/") :] for line in lines if "/" in line and " @" not in line}
    found = []
    for name in sorted(name for name in names if not name.startswith(("/run/", "/var/run/")))[:MAX_SOCKETS]:
        try:
            real = Path(name).resolve(strict=True)
            if stat.S_ISSOCK(real.stat().st_mode):
                found.append(real)
        except (OSError, ValueError, RuntimeError):
            continue
    return found


def listed_to_write(places: Places) -> list[str]:
    """Return the real paths that the user lists as writable."""
    return [str(path) for path in _listed(places.write, places)]


def readable_without_namespaces(places: Places) -> tuple[str, ...]:
    """Return the paths below which a command may read if nothing can be mounted: all except hidden ones.

    Landlock can only add rights, so every folder above a hidden path is expanded to its entries.
    """
    hidden = {*map(str, hidden_places(places)), "/tmp", "/var/tmp"}  # noqa: S108
    shown = [*map(Path, written_places(places, with_mounts=False)), *_listed(places.read, places)]
    shown += [*_real(places.needed), *_existing(_table()["needed"], places)]
    above = {parent for path in hidden for parent in Path(path).parents}
    opened = {str(path) for path in above if not {str(path), *map(str, path.parents)} & hidden}
    found = [str(path) for path in shown]
    for folder in sorted(opened):
        try:
            names = [entry.name for entry in os.scandir(folder) if not entry.is_symlink()]
        except OSError:
            continue
        for name in names:
            path = f"{folder.rstrip('/')}/{name}"
            if path not in opened and path not in hidden:
                found.append(path)
    return tuple(found)
