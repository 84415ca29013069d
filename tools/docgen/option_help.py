"""The lists of options, keys and tools in the help file."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from tools.docgen.schema import Option, walk

TAG = "codecompanion."
_MAX_DEFAULT_LENGTH = 60
_WIDTH = 78


def option_lines(section: Option, path: str = "") -> Iterator[str]:
    """Yield the entries of all options in the order of the schema; keys and tools have separate lists."""
    tool_listed = False
    for option in section.children:
        here = f"{path}.{option.name}" if path else option.name
        if option.keymap or here.endswith("keymaps.<name>"):
            continue
        if option.tool:
            if not tool_listed:
                yield from _tool_options(f"{path}.<tool>", option)
            tool_listed = True
        elif option.fields is not None:
            yield from _section(here, option)
            yield from option_lines(option, here)
        else:
            yield from _option(here, option)


def _tool_options(path: str, tool: Option) -> Iterator[str]:
    """Yield the options that every tool has, once for all of them."""
    for inner_path, inner in walk(tool):
        if inner.fields is None:
            yield from _option(f"{path}.{inner_path}", inner, "see |codecompanion-tools|")


def keymap_lines(schema: Option) -> Iterator[str]:
    """Yield the table of the keys of the chat buffer."""
    for path, option in walk(schema):
        if not option.keymap:
            continue
        modes = (option.fields or [])[0]
        keys = {mode.name: _listed(mode.default) for mode in modes.fields or () if mode.default}
        name = path.rpartition(".")[2]
        shown = "  ".join(f"{mode}: {' '.join(found)}" for mode, found in keys.items())
        yield f"    `{name}`".ljust(26) + shown
        yield f"        {option.description}"


def tool_lines(schema: Option) -> Iterator[str]:
    """Yield the table of the tools with their defaults."""
    for path, option in walk(schema):
        if not option.tool:
            continue
        defaults = {inner.name: inner.default for _, inner in walk(option)}
        asks = "asks" if defaults["require_approval_before"] else "runs"
        yolo = "" if defaults["allowed_in_yolo_mode"] else ", even in YOLO mode"
        seconds = int(defaults["timeout"]) // 1000
        yield f"    `{path.rpartition('.')[2]}`"
        yield f"        {option.description} ({asks}{yolo}; {seconds} s)"


def _heading(path: str) -> Iterator[str]:
    tag = f"*{TAG}{path}*"
    if len(path) + 2 + len(tag) <= _WIDTH:
        yield f"{path} {tag}"
    else:
        yield tag
        yield path


def _section(path: str, option: Option) -> Iterator[str]:
    yield from _heading(path)
    text = f"{option.description} `false` switches it off." if option.disable else option.description
    yield from _wrapped(text)
    yield ""


def _option(path: str, option: Option, default: str = "") -> Iterator[str]:
    yield from _heading(path)
    kinds = " or ".join(_kind(option, kind) for kind in option.types)
    yield from _wrapped(f"Type: {kinds}" + (f", at least {option.min:g}" if option.min is not None else ""))
    if default:
        yield from _wrapped(f"Default: {default}")
    elif not option.default_text:
        yield "    Default: not set"
    elif len(option.default_text) <= _MAX_DEFAULT_LENGTH:
        yield f"    Default: `{option.default_text}`"
    else:
        yield "    Default: >lua"
        yield from textwrap.wrap(
            option.default_text, _WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 10, break_on_hyphens=False
        )
        yield "<"
    yield ""
    yield from _wrapped(option.description)
    yield ""


def _kind(option: Option, kind: str) -> str:
    if kind == "string" and option.enum:
        return " or ".join(f'`"{value}"`' for value in option.enum)
    if kind == "function" and option.signature:
        return f"`{option.signature}`"
    if kind == "list" and option.items:
        return f"list of {' or '.join(option.items.types)}"
    return kind


def _listed(keys: Any) -> list[str]:
    return [keys] if isinstance(keys, str) else list(keys)


def _wrapped(text: str) -> list[str]:
    margin = " " * 4
    return textwrap.wrap(
        text, _WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )
