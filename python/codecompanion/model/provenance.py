"""Determines the sources of a message's text, and which of them restrict the grants of a chat.

Most sources are derived from the role, tag, path and called tool. Only the others are stored with the message
(`Message.sources`): the server of a tool, the program that reached the network, the parts of a summary. Sources apply
to a whole message, not to its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.regex import regex
from codecompanion.model.messages import (
    EDITOR_TAG,
    GATHERED_TAG,
    IMAGE_TAG,
    RULES_TAG,
    SUMMARY_TAG,
    UPDATE_TAG,
    Message,
    Source,
)

USER, MODEL, PLUGIN, FILE, COMMAND = (
    Source("user"),
    Source("model"),
    Source("plugin"),
    Source("file"),
    Source("command"),
)
PAGE_TAG = "page"
SERVER_PATH = "mcp:"
"""Prefix of the path of an attached resource: `mcp:server:URI`."""
UNKNOWN = Source("outside")
"""The source of text that was stored without a source."""
MAX_NAME_CHARS = 200

_ADDRESS = regex(r"(?i:https?)://")
_SCHEME = regex(r"([A-Za-z][A-Za-z0-9+.-]{1,20}):/")
_LOCAL_SCHEMES = frozenset("file fugitive gitsigns diffview oil term man zipfile tarfile jdt".split())
"""Schemes of buffer names whose content is local and was opened by the user's own programs."""
_OUTSIDE = regex(r"~|/|\\|\.\.(?:[/\\]|$)|[A-Za-z]:[\\/]")
_MENTIONED_SERVER = regex(r"#\{mcp:([^:}]+)")
_OF_FILES = frozenset({"file", "buffer", "diff", "symbols", "document", "selection", IMAGE_TAG, UPDATE_TAG})
_OF_EDITOR = frozenset({EDITOR_TAG, "diagnostics", "quickfix", "viewport", "help"})
_CLEARED = regex(
    r"<important>(?:Tool result cleared|File content for `|Buffer content for `|Image content |Code gathered for the"
    r" next message cleared|`[^`\n]*` of an earlier message cleared)[^\n]*</important>"
    r"|\[(?:Tool result truncated — originally \d+ chars|older retained \w+ from [^\n]* pruned for prompt budget"
    r"|cleared to save context)\]"
    r'|\{"error":"pruned"\}|\[?\s*\]?'
)
"""Matches the text of `placeholders`: the plugin wrote it, whatever it replaces."""

Trusts = Callable[[str], bool]
"""Returns whether the user trusts a folder."""


def is_cleared(message: Message) -> bool:
    """Return whether a placeholder of the plugin has replaced the message's text."""
    is_bare = isinstance(message.content, str) or all(part.__class__.__name__ == "TextPart" for part in message.content)
    return is_bare and (message.edited or message.compacted) and bool(_CLEARED.fullmatch(message.text.strip()))


def sources_of(message: Message, tool: str = "") -> tuple[Source, ...]:
    """Return the sources of a message's text; for a cleared message, those of the text it had.

    `tool`: the name of the tool that gave a result, for results of earlier versions, which do not store it.
    """
    return message.sources or (_derived(message, tool),)


def _derived(message: Message, tool: str) -> Source:
    if message.role == "system":
        return PLUGIN
    if message.role == "assistant" or message.tag == SUMMARY_TAG:
        return MODEL
    if message.role == "tool":
        return of_tool(tool)
    path = message.path or ""
    if message.tag == PAGE_TAG or _ADDRESS.match(path):
        return named("page", path)
    if (scheme := _SCHEME.match(path)) and scheme[1].lower() not in _LOCAL_SCHEMES:
        return named("outside", path)
    if message.tag is not None and path.startswith(SERVER_PATH):
        return named("server", path.removeprefix(SERVER_PATH).partition(":")[0])
    if message.file is not None and message.file.outside:
        return named("outside", message.file.outside)
    if message.mentioned is not None and (server := _MENTIONED_SERVER.search(message.mentioned.written)):
        return named("server", server[1])
    if message.tag in _OF_FILES:
        return named("outside", path) if _OUTSIDE.match(path) else FILE
    if message.tag in _OF_EDITOR or message.tag == GATHERED_TAG or message.mentioned is not None:
        return FILE
    if message.tag == "terminal":
        return COMMAND
    return USER if message.tag in (None, RULES_TAG, "text") else PLUGIN


def of_tool(tool: str) -> Source:
    """Return a result's source, derived only from the tool's name; a server's tool is named `server__name`."""
    if tool == "run_command":
        return COMMAND
    server, is_of_server, _ = tool.partition("__")
    return named("server", server) if is_of_server and server else FILE


def named(kind: str, name: str) -> Source:
    """Return a source whose name is reduced to one line of limited length."""
    return typed.convert({"kind": kind, "name": " ".join(name.split())[:MAX_NAME_CHARS]}, Source)


def union(*groups: Iterable[Source]) -> tuple[Source, ...]:
    """Return all sources without duplicates, in the order of their first appearance."""
    return tuple(dict.fromkeys(source for group in groups for source in group))


def is_untrusted(source: Source, trusts: Trusts, root: str) -> bool:
    """Return whether text from that source restricts grants, because somebody other than the user may have written it.

    Pages, servers and fetched text always do; files do if the user does not trust their folder. The output of a command
    is treated like the files that it could read.
    """
    match source.kind:
        case "page" | "server":
            return True
        case "outside":
            return not source.name or not trusts(str(PurePath(source.name).parent))
        case "command":
            return bool(source.name) or not trusts(root)
        case "file":
            return not trusts(source.name or root)
        case _:
            return False


def described(source: Source) -> str:
    """Return the source in a few words, for approvals and the inspector."""
    match source.kind:
        case "page":
            return source.name or "a page"
        case "server":
            return f"the MCP server {source.name}"
        case "outside":
            return f"{source.name} (outside the workspace)" if source.name else "an unknown source"
        case "command":
            return f"a {source.name} command" if source.name else "a command"
        case "file":
            return f"the untrusted folder {source.name}" if source.name else "files of the workspace"
        case "user":
            return "you"
        case "model":
            return "the model"
        case _:
            return "CodeCompanion"


class SourcesSoFar(msgspec.Struct, frozen=True):
    """The sources of a list of messages, read incrementally (`model.fold`), so a turn reads only new messages."""

    live: tuple[Source, ...] = ()
    """Sources of text that is still in the view."""
    tools: Mapping[str, str] = {}
    """The tool names of the newest calls, by call id."""


def read_sources(so_far: SourcesSoFar, new: Sequence[Message]) -> SourcesSoFar:
    """Return the sources after new messages were appended to the list."""
    found, tools = dict.fromkeys(so_far.live), so_far.tools
    for message in new:
        if message.tool_calls:
            tools = {call.id: call.name for call in message.tool_calls}
        if not is_cleared(message):
            found.update(dict.fromkeys(sources_of(message, tools.get(message.tool_call_id or "", ""))))
    return SourcesSoFar(tuple(found), tools)


def made_of(messages: Iterable[Message], only: frozenset[str]) -> tuple[Source, ...]:
    """Return all sources of the messages with these ids, including those of cleared text."""
    found: dict[Source, None] = {}
    tools: dict[str, str] = {}
    for message in messages:
        for call in message.tool_calls:
            tools[call.id] = call.name
        if message.id in only:
            for source in sources_of(message, tools.get(message.tool_call_id or "", "")):
                found[source] = None
    return tuple(found)


def inherited(before: Sequence[Message], after: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages after a change; those that may repeat removed text get the sources of the removed messages.

    These are new messages, a summary that replaced the message with its id, and messages whose text has grown.
    """
    known = {message.id: message for message in before}
    gone = made_of(before, frozenset(known) - {message.id for message in after})
    return tuple(_inheriting(message, known.get(message.id), gone) for message in after)


def _inheriting(message: Message, was: Message | None, gone: tuple[Source, ...]) -> Message:
    if message is was or message == was:
        return message
    if was is None:
        return msgspec.structs.replace(message, sources=union(sources_of(message), gone)) if gone else message
    if message.tag == SUMMARY_TAG or (gone and len(message.text) > len(was.text)):
        return msgspec.structs.replace(message, sources=union(sources_of(message), sources_of(was), gone))
    return message
