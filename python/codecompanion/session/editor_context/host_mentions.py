"""Reads the mentioned editor context that the host provides: `#{file:path}`, `#{diff:staged}`.

To add a source, register it in `Services.context_sources` under the name of its item; the editor marks the item of that
name as `by_host`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec

from codecompanion.errors import CodeCompanionError
from codecompanion.formats.text_files import printable, read_text, split_lines
from codecompanion.retrieval.mentions import place_of
from codecompanion.session.editor_context.source import Source, SourceResult
from codecompanion.tools.files.open_files import Editor
from codecompanion.wire.requests import EditorItem, EditorText

_MAX_UNTRACKED = 50


async def read_by_host(item: EditorItem, root: Path, editor: Editor, others: Mapping[str, Source]) -> EditorItem:
    """Return the item with content from its source, or with an error."""
    built_in: dict[str, Source] = {"file": partial(read_file, editor), "diff": take_diff}
    source = others.get(item.name) or built_in.get(item.name)
    if source is None:
        taken = SourceResult(error="it is not available here")
    else:
        try:
            taken = await source(item.argument, root)
        except CodeCompanionError as error:
            taken = SourceResult(error=str(error))
    return msgspec.structs.replace(item, texts=taken.texts, nothing=taken.nothing, error=taken.error, comes="now")


async def read_file(editor: Editor, argument: str, root: Path) -> SourceResult:
    """Return a file as the user sees it, with unsaved changes; for `path:10-20`, only these lines."""
    if not argument:
        return SourceResult(error="it needs a path, such as #{file:src/main.py}")
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
            return SourceResult(error=f"{place.name} has {len(lines)} lines; line {first} does not exist")
        lines = lines[first - 1 : max(first, place.end)]
    if not any(line.strip() for line in lines):
        return SourceResult(nothing="the file is empty")
    shown = EditorText(
        "\n".join(lines),
        path=str(path),
        first=first,
        whole=place.start < 0,
        unsaved=unsaved is not None,
    )
    return SourceResult((shown,))


def _real_path(root: Path, path: str) -> Path:
    return (root / Path(path).expanduser()).resolve()


async def take_diff(argument: str, root: Path) -> SourceResult:
    """Return the changes reported by git; for `argument`, see `workspace.git_diff`."""
    from codecompanion.workspace.git_diff import read_diff  # rarely used, not needed at startup

    diff = await asyncio.to_thread(read_diff, root, argument)
    if not diff:
        return SourceResult(nothing=diff.nothing)
    texts = [EditorText(diff.text, f"changes {diff.title}", language="diff")] if diff.text.strip() else []
    if diff.untracked:
        more = len(diff.untracked) - _MAX_UNTRACKED
        names = (*diff.untracked[:_MAX_UNTRACKED], *([f"… {more} more"] if more > 0 else []))
        texts.append(EditorText("\n".join(names), "new files that git does not track"))
    if diff.secret:
        texts.append(EditorText("\n".join(diff.secret), "changed, but left out because they may contain secrets"))
    return SourceResult(tuple(texts))
