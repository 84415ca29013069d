"""S7 `format_transcript`: formats the removed messages as text for a summariser (R-424, R-436…R-439, R-525, R-126).

All content is data: it cannot close or open the wrapper or pose as another entry, base64 never appears, and rules are
left out because they are attached again verbatim. There is one entry per message; `wrap` joins them.
"""

from __future__ import annotations

import re
from typing import assert_never

import msgspec

from codecompanion.context.strategy_parameters import Caps, FormatTranscript
from codecompanion.context.summary_text.recall_keys import without_keys
from codecompanion.context.transcript.size import entry_sizes, fit_entries
from codecompanion.context.work import Env, Outcome, Work
from codecompanion.formats.cutting import cut_middle, cut_middle_or_tail, cut_with_note
from codecompanion.formats.regex import regex
from codecompanion.model.messages import IMAGE_TAG, LOOKING_TAG, STARTING_TAGS, SUMMARY_TAG, Message
from codecompanion.summary_frame import bare_summary

_WRAPPER = regex(r"<(\s*/?\s*)(message|conversation)\b", re.IGNORECASE)
_BASE64 = regex(r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/=]{64,}")
_LINE_START = regex(r"^(?=\[(?:user|assistant|tool|system|previous summary)\]|--- Turn )", re.MULTILINE)
_SPOKEN = regex(r'(?:--- Turn \d+ ---\n)?\[user\]|<message role="[uU]ser">')
_MEGABYTE = 1_000_000
PREVIOUS_SUMMARY = "[previous summary]"
_LABELS = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}

_ALL = Caps()


def format_transcript(work: Work, params: FormatTranscript, env: Env) -> Outcome:
    """Return the work with `transcript`, one entry per message, in order."""
    told: list[Message] = []
    previous: list[str] = []
    for message in work.removed:
        if message.tag == SUMMARY_TAG and params.previous_summary != "entry":
            previous.append(without_keys(bare_summary(message.text)))
        elif _is_included(message, params):
            told.append(message)
    entries = _entries(tuple(told), params)
    sizes = entry_sizes(entries, told, env)
    lead = ""
    if previous and params.previous_summary == "lead":
        text = cut_middle("\n\n".join(previous), params.max_chars // 2)
        lead = f"{PREVIOUS_SUMMARY}\n{escape_lines(escape(text))}"
    if params.max_chars:
        # Entries are joined by newlines, which count as well.
        limit = params.max_chars - (len(lead) + 1 if lead else 0)
        whole, entries = entries, fit_entries(entries, [is_spoken(entry) for entry in entries], limit)
        sizes = sizes if entries is whole else ()
    if lead:
        entries, sizes = (lead, *entries), (0, *sizes) if sizes else ()
    return msgspec.structs.replace(work, transcript=entries, entry_sizes=sizes)


def _is_included(message: Message, params: FormatTranscript) -> bool:
    """Return whether a summariser needs to see the message."""
    if message.tag == SUMMARY_TAG:
        return True
    left_out = (*STARTING_TAGS, LOOKING_TAG) if params.style == "lines" else (*STARTING_TAGS, LOOKING_TAG, IMAGE_TAG)
    return message.role != "system" and message.tag not in left_out and not message.compacted


def _entries(messages: tuple[Message, ...], params: FormatTranscript) -> tuple[str, ...]:
    match params.style:
        case "xml":
            entries = tuple(format_entry(message, params.caps) for message in messages)
        case "lines":
            entries = format_lines(messages, params.caps)
        case "labels":
            return tuple(format_labelled(message, params.max_entry_chars) for message in messages)
        case _:
            assert_never(params.style)
    return tuple(cut_middle(entry, params.max_entry_chars) for entry in entries)


def format_entry(message: Message, caps: Caps = _ALL) -> str:
    """Return one message as `<message role="R">…</message>`, with calls as `Tool: name(arguments)` lines."""
    text = _text(message, caps)
    lines = [escape(text)] if text else []
    lines += [f"[image {escape(part.path or part.mime)}]" for part in message.images]
    for call in message.tool_calls:
        lines.append(f"Tool: {escape(call.name)}({escape(cut_middle_or_tail(call.arguments, caps.call))})")
    return f'<message role="{message.role}">' + "\n".join(lines) + "</message>"


def format_labelled(message: Message, max_chars: int) -> str:
    """Return one message with its label in the wrapper (R-126), at most `max_chars` characters, or all if 0 (R-127)."""
    text = _text(message, _ALL)
    lines = [text] if text else []
    lines += [f"[image {part.path or part.mime}]" for part in message.images]
    lines += [f"{call.name}({call.arguments})" for call in message.tool_calls]
    text, label = "\n".join(lines), _LABELS[message.role]
    if max_chars:
        text = cut_with_note(text, max_chars, max_chars, f"\n[... {len(text) - max_chars} chars truncated]")
    return f'<message role="{label}">\n{label}: {escape(text)}\n</message>'


def format_lines(messages: tuple[Message, ...], caps: Caps = _ALL) -> tuple[str, ...]:
    """Return the messages as `[role] …` lines, with a turn line before each change of role (R-438)."""
    entries: list[str] = []
    turn, speaking = 0, ""
    for message in messages:
        lines: list[str] = []
        if message.role != speaking:
            turn, speaking = turn + 1, message.role
            lines.append(f"--- Turn {turn} ---")
        text = escape_lines(escape(_text(message, caps)))
        if text:
            lines.append(f"[{message.role}] {'TOOL_RESULT ' if message.role == 'tool' else ''}{text}")
        for call in message.tool_calls:
            arguments = escape_lines(escape(cut_middle_or_tail(call.arguments, caps.call)))
            lines.append(f"[{message.role}] TOOL_USE {escape(call.name)} {arguments}")
        for image in message.images:
            lines.append(f"[{message.role}] IMAGE {escape(image.mime)} {image.size_bytes / _MEGABYTE:.1f}MB")
        entries.append("\n".join(lines))
    return tuple(entries)


def _text(message: Message, caps: Caps) -> str:
    """Return the text of the message within its cap, without embedded base64 data."""
    cap = {"user": caps.user, "assistant": caps.assistant, "tool": caps.tool}.get(message.role, 0)
    text = without_keys(message.text) if message.tag == SUMMARY_TAG else message.text
    return cut_middle_or_tail(_without_base64(text), cap)


def is_spoken(entry: str) -> bool:
    """Return whether an entry is a user message."""
    return _SPOKEN.match(entry) is not None


def escape(text: str) -> str:
    """Return the text escaped so that it cannot open or close the wrapper, and without embedded base64 data."""
    text = _without_base64(text)
    return _WRAPPER.sub(r"<\\\1\2", text) if "<" in text else text


def _without_base64(text: str) -> str:
    return _BASE64.sub("[binary data]", text) if ";base64," in text else text


def escape_lines(text: str) -> str:
    """Return the text without lines that look like the start of an entry."""
    return _LINE_START.sub(r"\\", text)


def wrap(entries: tuple[str, ...], order: str = "") -> str:
    """Return the entries as one conversation, after `order`; joined in one step, because the text is long."""
    head = f"{order}\n\n<conversation>" if order else "<conversation>"
    return "\n".join((head, *(entries or ("",)), "</conversation>"))
