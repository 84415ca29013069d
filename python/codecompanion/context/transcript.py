"""S7 `format_transcript`: the removed messages as text for a summariser (R-525, R-126).

Everything in it is data: content cannot close or open the wrapper, base64 never appears, rules are left out because
they are re-attached verbatim.
"""

from __future__ import annotations

import re

import msgspec

from codecompanion.context.work import Env, Outcome, Work
from codecompanion.messages import IMAGE_TAG, RULES_TAG, ImagePart, Message

_WRAPPER = re.compile(r"<(\s*/?\s*)(message|conversation)\b", re.IGNORECASE)
_BASE64 = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/=]{64,}")


class FormatTranscript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S7. `max_entry_chars` caps one message (head 70 %, tail 30 %); 0 = no cap."""

    max_entry_chars: int = 0


def format_transcript(work: Work, params: FormatTranscript, env: Env) -> Outcome:
    """Return the work with `transcript`, one entry a message, in order."""
    entries = tuple(
        shorten_middle(format_entry(message), params.max_entry_chars)
        for message in work.removed
        if message.role != "system" and message.tag not in (RULES_TAG, IMAGE_TAG) and not message.compacted
    )
    return msgspec.structs.replace(work, transcript=entries)


def format_entry(message: Message) -> str:
    """Return one message as `<message role="R">…</message>`, calls as `Tool: name(arguments)` lines."""
    lines = [escape(message.text)] if message.text else []
    if not isinstance(message.content, str):
        lines += [
            f"[image {escape(part.path or part.mime)}]" for part in message.content if isinstance(part, ImagePart)
        ]
    lines += [f"Tool: {escape(call.name)}({escape(call.arguments)})" for call in message.tool_calls]
    return f'<message role="{message.role}">' + "\n".join(lines) + "</message>"


def escape(text: str) -> str:
    """Return the text unable to open or close the wrapper, and without embedded base64 data."""
    return _WRAPPER.sub(r"<\\\1\2", _BASE64.sub("[binary data]", text))


def wrap(entries: tuple[str, ...]) -> str:
    """Return the entries as one conversation."""
    return "<conversation>\n" + "\n".join(entries) + "\n</conversation>"


def shorten_middle(text: str, limit: int) -> str:
    """Return at most `limit` characters: 70 % head, 30 % tail, and a marker that says how much is missing."""
    if limit <= 0 or len(text) <= limit:
        return text
    marker = f"\n…[{len(text) - limit} characters left out]…\n"
    room = max(0, limit - len(marker))
    head = room * 7 // 10
    return text[:head] + marker + text[len(text) - (room - head) :] if room else text[:limit]
