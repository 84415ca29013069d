"""Defines the message model (R-001, R-548), whose values all other modules pass around.

All types are frozen; a change creates a new value (`msgspec.structs.replace`). A removed message leaves the view, never
the log (R-003).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from codecompanion.model.mentioned import Mentioned, Reference

Role = Literal["system", "user", "assistant", "tool"]
SourceKind = Literal["user", "model", "plugin", "file", "outside", "page", "server", "command"]

# Tags of R-548 for attachments of the user, replaceable by a reference placeholder; messages with any other tag
# are summarised like typed messages.
FILE_TAGS = frozenset({"file"})
BUFFER_TAGS = frozenset({"buffer", "editor_context"})
IMAGE_TAG = "image"
RULES_TAG = "rules"
MEMORY_TAG = "memory_recall"
"""Tag of the project's memory, attached to a new chat (R-420); the message is always `pinned`."""
STARTING_TAGS = frozenset({RULES_TAG, MEMORY_TAG})
"""Tags of the messages that a new chat starts with."""
SUMMARY_TAG = "compact_summary"
TAGS = frozenset(
    """buffer compact_summary diagnostics diff document editor_context file image quickfix rules selection
    system_prompt_from_config terminal tool tool_output tool_system_prompt viewport""".split()
)
PIN_TAG = "pin"
"""Tag of an instruction that the user pinned for the whole chat (R-361); the message is always `pinned`."""
REVERTED_TAG = "reverted"
"""Tag of the plugin's message that the user reverted a tool's change of a file."""
REAPPLIED_TAG = "reapplied"
"""Tag of the plugin's message that the user reapplied a reverted change."""
GO_ON_TAG = "go_on"
"""Tag of the plugin's user message that asks the model to continue a truncated reply; it does not open a cycle."""
GATHERED_TAG = "gathered_context"
"""Tag of code gathered for the question after it (R-253); it does not open a cycle (R-002)."""
UPDATE_TAG = "file_update"
"""Tag of the changes of an attached file since the model saw it, placed before the question."""
EDITOR_TAG = "editor_context"
"""Tag of editor content that a message mentions (`#{diagnostics}`), placed right before it; has `mentioned`."""
LOOKING_TAG = "looking_at"
"""Tag of the plugin's line about the file and lines that the user is looking at."""
UNSHOWN_TAGS = frozenset({GO_ON_TAG, LOOKING_TAG, REAPPLIED_TAG, REVERTED_TAG, SUMMARY_TAG})
"""Tags of messages that a chat does not show as messages; counts shown to the user exclude them."""
_OURS = frozenset({GATHERED_TAG, GO_ON_TAG, LOOKING_TAG, PIN_TAG, SUMMARY_TAG, UPDATE_TAG})


class TextPart(msgspec.Struct, frozen=True, gc=False, tag="text", omit_defaults=True):
    """The text of a message that also has other parts. `phase`: commentary or final answer, as in the Responses API."""

    text: str
    phase: str = ""


class ImagePart(msgspec.Struct, frozen=True, gc=False, tag="image", omit_defaults=True):
    """An image: either the `sha256` of a stored blob, or a `url` (http or data URL, command line only)."""

    mime: str = "image/png"
    sha256: str = ""
    url: str = ""
    path: str | None = None
    size_bytes: int = 0
    width: int = 0
    height: int = 0
    detail: str = ""


class DocumentPart(msgspec.Struct, frozen=True, gc=False, tag="document", omit_defaults=True):
    """A PDF: the `sha256` of a stored blob. `pages`: the number of pages, or 0 if unknown."""

    mime: str = "application/pdf"
    sha256: str = ""
    path: str | None = None
    size_bytes: int = 0
    pages: int = 0


class ReasoningPart(msgspec.Struct, frozen=True, gc=False, tag="reasoning", omit_defaults=True):
    """The model's reasoning. `field`: its wire field (`reasoning_content`, `reasoning`).

    `encrypted`: data that the provider wants back unchanged (a signed or encrypted block, as JSON); `origin`: the
    provider that made it (`Adapter.origin`). It is never sent to another provider (R-542), and never edited (lesson
    26). `text` may be empty.
    """

    text: str
    field: str = "reasoning_content"
    origin: str = ""
    encrypted: str = msgspec.field(default="", name="opaque")  # stored under its older name


class CompactionPart(msgspec.Struct, frozen=True, gc=False, tag="compaction", omit_defaults=True):
    """The result of a provider's own compaction, which replaces the history before it (R-537, R-539).

    `encrypted`: a JSON array of the blocks or items to send back verbatim to `origin`, and to no other provider
    (R-542). `text`: the readable summary, if any; `tokens`: its size, if reported. `on_demand`: it was requested
    explicitly (R-540), after which Anthropic does not compact automatically.
    """

    origin: str
    encrypted: str = msgspec.field(name="opaque")
    text: str = ""
    tokens: int = 0
    on_demand: bool = False


class CallMark(msgspec.Struct, frozen=True, gc=False, tag="call"):
    """Marks the position of `tool_calls[position]` among the parts; a call without a mark follows all of them."""

    position: int


Part = TextPart | ImagePart | DocumentPart | ReasoningPart | CompactionPart | CallMark
Content = str | tuple[Part, ...]


class ToolCall(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One call requested by the model. `arguments`: the JSON text exactly as the model wrote it.

    `encrypted`: data that the provider `origin` wants back with the call (Gemini's thought signature), as JSON.
    """

    id: str
    name: str
    arguments: str = "{}"
    origin: str = ""
    encrypted: str = msgspec.field(default="", name="opaque")


class Usage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Token counts of **one** provider call, normalised: the four input figures do not overlap.

    prompt = input + cache read + cache write; `output_tokens` includes `reasoning_tokens` (lesson 7).
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """Return the size of the prompt as counted by the provider."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


class Source(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The origin of text; `model.provenance` defines which origins narrow the grants of a chat.

    `name`: for a `page` its URL, for a `server` its name, for a file `outside` the workspace its path, for a `file` the
    workspace while that is not trusted, for a `command` the program that reached the network; else "".
    """

    kind: SourceKind
    name: str = ""


class GatheredPiece(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A piece of code in a gathered message (R-249, R-268): its location, its gatherer, and its score.

    Lines are 1-based and inclusive (0 for text without lines); `score` is 0..1; `tokens` as counted in the budget.
    `source`: the gatherer that found it; `name`: the definition there, or "". `is_cut`: it is truncated; `of`: its full
    number of lines, or 0 if unknown. `is_above`: only its name was sent, because an earlier message still has its
    unchanged text. `is_file`: it is the whole file.
    """

    path: str
    start: int = 0
    end: int = 0
    source: str = ""
    score: float = 0.0
    tokens: int = 0
    kind: str = ""
    name: str = ""
    is_cut: bool = False
    of: int = 0
    is_above: bool = False
    is_file: bool = False


class AttachedFile(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The file text that a message shows: its sha256, or the reason why it has none (`model.live_files`).

    `live`: the model is notified when the file changes. `is_diff`: the message has only the differences. `outside`: the
    real location that the user attached if it is not below the workspace, else "".
    """

    sha256: str
    live: bool = False
    is_diff: bool = False
    outside: str = ""


class Message(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One message of the history or the view (R-001).

    `tokens`: the cached, uncalibrated estimate of the whole message (0 = not counted yet). `blob`: the sha256 of the
    full text if `content` is only its head and tail. `cut`: the stream of the reply ended early. `left_out`: the number
    of characters cut from a tool result to make it fit (0 = none, or a placeholder replaces all of it). `gathered`: the
    pieces of gathered code in the message; `mentioned`: the metadata of editor context; both stay when the text is
    cleared. `file`: the version of the file that an attachment or update shows. `references`: its references to text in
    other messages. `sources`: the sources of its text that cannot be derived from its other fields
    (`model.provenance`).
    """

    id: str
    role: Role
    content: Content = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    cycle: int | None = None
    turn_id: str = ""
    tag: str | None = None
    path: str | None = None
    pinned: bool = False
    is_error: bool = False
    edited: bool = False
    compacted: bool = False
    visible: bool = True
    cut: bool = False
    left_out: int = 0
    blob: str = ""
    ts: float = 0.0
    tokens: int = 0
    usage: Usage | None = None
    gathered: tuple[GatheredPiece, ...] = ()
    file: AttachedFile | None = None
    mentioned: Mentioned | None = None
    references: tuple[Reference, ...] = ()
    sources: tuple[Source, ...] = ()

    @property
    def text(self) -> str:
        """Return the readable text: the content string, or its text parts joined by newlines."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def images(self) -> tuple[ImagePart, ...]:
        """Return the image parts."""
        if isinstance(self.content, str):
            return ()
        return tuple(part for part in self.content if isinstance(part, ImagePart))

    @property
    def documents(self) -> tuple[DocumentPart, ...]:
        """Return the PDF parts."""
        if isinstance(self.content, str):
            return ()
        return tuple(part for part in self.content if isinstance(part, DocumentPart))

    @property
    def compaction(self) -> CompactionPart | None:
        """Return the provider's compaction in the message, or None for any other message."""
        if isinstance(self.content, str):
            return None
        return next((part for part in self.content if isinstance(part, CompactionPart)), None)


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as shown to the model. `parameters`: a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


def replaced_text(message: Message, text: str) -> Content:
    """Return the message's content with the text replaced; images and documents stay."""
    parts = () if isinstance(message.content, str) else message.content
    others = tuple(part for part in parts if not isinstance(part, TextPart))
    return (TextPart(text), *others) if others else text


def with_changes(message: Message, **changes: Any) -> Message:
    """Return a copy with the given fields changed; new content resets `tokens` and `left_out` (R-112)."""
    if "content" in changes:
        changes = {"tokens": 0, "left_out": 0, **changes}
    return msgspec.structs.replace(message, **changes)


def is_protected(message: Message) -> bool:
    """Return whether no strategy may change the message: the system prompt, rules, or a pinned message (K8).

    A summary is never protected, whatever its role: the next one replaces it (R-421).
    """
    if message.tag == SUMMARY_TAG:
        return False
    return message.role == "system" or message.tag == RULES_TAG or message.pinned


def is_system_prompt(message: Message) -> bool:
    """Return whether the message is (part of) the system prompt, not a summary with the system role."""
    return message.role == "system" and message.tag is None


def is_typed_by_user(message: Message) -> bool:
    """Return whether the user typed the message, which opens a cycle (R-002)."""
    return message.role == "user" and message.tag is None


def is_question_context(message: Message) -> bool:
    """Return whether the message was attached to the question after it, as gathered code or a mention."""
    return message.tag == GATHERED_TAG or message.mentioned is not None


def is_attachment(message: Message) -> bool:
    """Return whether the user attached the message to the chat rather than to a question."""
    return (
        message.role == "user"
        and message.tag is not None
        and message.tag not in _OURS
        and not is_question_context(message)
    )


def has_encrypted(message: Message) -> bool:
    """Return whether the message contains reasoning or calls that only the provider can read."""
    parts = () if isinstance(message.content, str) else message.content
    return any(isinstance(part, ReasoningPart) and part.encrypted for part in parts) or any(
        call.encrypted for call in message.tool_calls
    )


def without_encrypted(message: Message) -> Message:
    """Return the message with readable reasoning only."""
    parts = () if isinstance(message.content, str) else message.content
    bare = tuple(ReasoningPart(part.text, part.field) if isinstance(part, ReasoningPart) else part for part in parts)
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in message.tool_calls)
    return with_changes(message, content=bare or message.content, tool_calls=calls, tokens=message.tokens)
