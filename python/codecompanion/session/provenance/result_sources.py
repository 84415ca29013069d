"""Determines the sources of a tool result from its tool and the arguments it ran with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from codecompanion.formats.regex import regex
from codecompanion.model.messages import Source
from codecompanion.model.provenance import COMMAND, FILE, UNKNOWN, named
from codecompanion.session.provenance.memory_sources import MemorySources
from codecompanion.tools.builtin import BUILTIN_TOOLS
from codecompanion.tools.limit import STORED_PREFIX
from codecompanion.tools.tool import Recall, Tool, ToolOutput

_BUILT_IN = frozenset(tool.spec.name for tool in BUILTIN_TOOLS)
_WORD = regex(r"[\w./+-]+")
_ADDRESS = regex(r"https?://[^\s\"'`<>()\\]+")


def sources_of_result(
    tool: Tool, arguments: Mapping[str, Any], output: ToolOutput, recall: Recall, memories: MemorySources
) -> tuple[Source, ...]:
    """Return the sources of a result. May read the log, so call it in a thread."""
    if output.sources:
        return output.sources
    name = tool.spec.name
    if tool.server:
        return (named("server", tool.server),)
    if name == "run_command":
        return _of_command(str(arguments.get("command", "")), output)
    if name not in _BUILT_IN:  # a tool that takes a URL returns that page's text
        return _pages(arguments) or (COMMAND,)
    if name == "memory" and arguments.get("command") == "view":
        return memories.of(str(arguments.get("path", ""))) or (FILE,)
    path = str(arguments.get("path", ""))
    if name == "read_file" and path.startswith(STORED_PREFIX):
        return recall.sources_of_stored(path.removeprefix(STORED_PREFIX)) or (UNKNOWN,)
    return (FILE,)


def _of_command(command: str, output: ToolOutput) -> tuple[Source, ...]:
    """Return the URLs in a command line, or its program, if it printed text that others may have written."""
    if not output.printed:
        return (COMMAND,)
    from codecompanion.tools.commands.network import printing_program  # not needed at startup

    program = printing_program(command) or (_WORD.search(command) or ("command",))[0]
    return _pages(command) or (named("command", program),)


def _pages(arguments: Any) -> tuple[Source, ...]:
    pages = dict.fromkeys(match[0] for text in _texts(arguments) for match in _ADDRESS.finditer(text))
    return tuple(named("page", address) for address in pages)


def reads_disk(tool: Tool, arguments: Mapping[str, Any]) -> bool:
    """Return whether `sources_of_result` reads the log or a file for this call."""
    return tool.spec.name == "memory" or str(arguments.get("path", "")).startswith(STORED_PREFIX)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
