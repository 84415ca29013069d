"""What a message mentions and the host reads itself, by its argument: `#{file:path}`, `#{diff:staged}`.

Other sources are added to `Services.context_sources` under the name of their item; the editor has an item of that name
that comes `by_host`.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec

from codecompanion.errors import CodeCompanionError
from codecompanion.formats.regex import regex
from codecompanion.formats.text_files import printable, read_text, split_lines
from codecompanion.retrieval.mentions import place_of
from codecompanion.session.editor_context.source import Source, Taken
from codecompanion.tools.files.open_files import Editor
from codecompanion.wire.requests import EditorItem, EditorText
from codecompanion.workspace.git import read_git
from codecompanion.workspace.secret_files import is_secret

GIT_LIMIT_S = 10.0
DIFF_KINDS = ("staged", "unstaged", "branch")
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-prefix", "--relative")
_SECTION = regex(r"(?m)^(?=diff --git )")
_NAMES = regex(r"(?m)^(?:\+\+\+|---|rename from|rename to) ([^\t\n]+)")
_MAX_UNTRACKED = 50
_MAIN = ("origin/HEAD", "main", "master", "origin/main", "origin/master", "trunk", "develop")
"""What a branch is compared with: the first of them that there is."""


async def read_by_host(item: EditorItem, root: Path, editor: Editor, others: Mapping[str, Source]) -> EditorItem:
    """Return the item with what its source gives."""
    built_in: dict[str, Source] = {"file": partial(read_file, editor), "diff": read_diff}
    source = others.get(item.name) or built_in.get(item.name)
    if source is None:
        taken = Taken(error=f"nothing here reads #{{{item.name}}}")
    else:
        try:
            taken = await source(item.argument, root)
        except CodeCompanionError as error:
            taken = Taken(error=str(error))
    return msgspec.structs.replace(item, texts=taken.texts, nothing=taken.nothing, error=taken.error, comes="now")


async def read_file(editor: Editor, argument: str, root: Path) -> Taken:
    """Return a file as the user sees it: what is unsaved in the editor counts. `path:10-20` gives these lines."""
    if not argument:
        return Taken(error="it needs a path, such as #{file:src/main.py}")
    place = place_of(argument)
    path = await asyncio.to_thread(_real_path, root, argument)
    if place.start >= 0 and not await asyncio.to_thread(path.exists):
        path = await asyncio.to_thread(_real_path, root, place.name)
    else:
        place = msgspec.structs.replace(place, start=-1)
    opened = (await editor.look([path])).at(path)
    unsaved = opened.text if opened is not None and opened.modified else None
    text = unsaved if unsaved is not None else (await asyncio.to_thread(read_text, path)).text
    lines, first = split_lines(printable(text)), 1
    if place.start >= 0:
        first = max(1, place.start)
        if first > len(lines):
            return Taken(error=f"{place.name} has {len(lines)} lines, none at {first}")
        lines = lines[first - 1 : max(first, place.end)]
    if not any(line.strip() for line in lines):
        return Taken(nothing="the file is empty")
    shown = EditorText(
        "\n".join(lines), path=str(path), first=first, whole=place.start < 0, language=path.suffix.lstrip("."),
        unsaved=unsaved is not None,
    )  # fmt: skip
    return Taken((shown,))


def _real_path(root: Path, path: str) -> Path:
    return (root / Path(path).expanduser()).resolve()


async def read_diff(argument: str, root: Path) -> Taken:
    """Return what git sees changed: all since the last commit, what is staged, what is not, or the whole branch."""
    if argument and argument not in DIFF_KINDS:
        return Taken(error=f"there is no diff {argument!r}; expected {', '.join(DIFF_KINDS)}, or nothing")
    try:
        return await asyncio.to_thread(_diff, argument, root)
    except subprocess.TimeoutExpired:
        return Taken(error=f"git took longer than {GIT_LIMIT_S:.0f} s")
    except subprocess.CalledProcessError as error:
        why = (error.stderr or b"").decode("utf-8", "replace").strip().split("\n")[0]
        no_repository = "not a git repository" in why.lower()
        return Taken(error=f"{root.name or root} is in no git repository" if no_repository else f"git failed: {why}")
    except OSError as error:
        return Taken(error=f"git cannot be run: {error.strerror or error}")


def _git(root: Path, *arguments: str) -> str:
    return read_git(root, arguments, GIT_LIMIT_S).decode("utf-8", "replace")


def _diff(kind: str, root: Path) -> Taken:
    _git(root, "rev-parse", "--is-inside-work-tree")  # outside of one `git diff` means something else
    title = {
        "": "changes since the last commit", "staged": "changes that are staged", "unstaged": "changes not staged",
    }.get(kind, "")  # fmt: skip
    if kind == "staged":
        shown = _git(root, *_DIFF, "--cached")
    elif kind == "unstaged":
        shown = _git(root, *_DIFF)
    elif kind == "branch":
        base = _base(root)
        if not base:
            return Taken(error=f"there is no branch to compare with; expected one of {', '.join(_MAIN[1:3])}")
        shown, title = _git(root, *_DIFF, _git(root, "merge-base", base, "HEAD").strip()), f"changes since {base}"
    else:
        shown = _git(root, *_DIFF, "HEAD") if _exists(root, "HEAD") else _git(root, *_DIFF, "--cached")
    shown, secret = _without_secrets(shown)
    texts = [EditorText(shown, title, language="diff")] if shown.strip() else []
    if kind != "staged":
        texts += _untracked(root)
    if secret:
        names = "\n".join(secret)
        texts.append(EditorText(names, "changed, but left out because they hold secrets"))
    nothing = "nothing is staged" if kind == "staged" else "nothing has changed"
    return Taken(tuple(texts), nothing if not texts else "")


def _untracked(root: Path) -> list[EditorText]:
    """Return the names of new files that git does not know yet."""
    names = [name for name in _git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0") if name]
    if not names:
        return []
    more = [f"… {len(names) - _MAX_UNTRACKED} more"] if len(names) > _MAX_UNTRACKED else []
    return [EditorText("\n".join((*names[:_MAX_UNTRACKED], *more)), "new files that git does not track")]


def _without_secrets(shown: str) -> tuple[str, list[str]]:
    """Return a diff without the files that hold secrets, and their names: nobody named them."""
    kept, secret = list[str](), list[str]()
    for section in filter(None, _SECTION.split(shown)):
        name = section.partition("\n")[0].removeprefix("diff --git ")
        head = section.partition("\n@@")[0]
        names = {name[: len(name) // 2].strip(), *_NAMES.findall(head)} - {"/dev/null"}
        found = sorted(filter(is_secret, names))
        if found:
            secret += found
        else:
            kept.append(section)
    return "".join(kept), secret


def _base(root: Path) -> str:
    return next((name for name in _MAIN if _exists(root, name)), "")


def _exists(root: Path, name: str) -> bool:
    try:
        _git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except subprocess.CalledProcessError:
        return False
    return True
