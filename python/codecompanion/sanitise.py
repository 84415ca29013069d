"""Texts that come back later as if they were ours (summaries, memories) give no orders (R-242, R-433).

A summariser that obeyed what it read writes "ignore all previous instructions …" into the summary, and the next model
would read that as the user's. Such phrases are replaced by a fixed marker; what a user really said stays. This is no
defence by itself: approval of tools does not depend on it. Code and files are never passed through here.
"""

from __future__ import annotations

import re
import unicodedata

REMOVED = "[instruction found in the text left out]"
LONGEST = 8000

_OLD = r"all|any|every|previous|prior|above|earlier|preceding|foregoing|your|system|safety|other"
_OVERRIDE = re.compile(
    rf"\b(?:ignore|disregard|forget|override|bypass|do not follow|don't follow)\s+"
    rf"(?:(?:the|of|my|these|those|its)\s+)*(?:(?:{_OLD})\s+)(?:(?:{_OLD}|the|of|my|these|those|its)\s+)*"
    r"(?:instructions?|prompts?|rules|directions|directives|guidelines|guardrails|constraints|messages)\b"
    r"|\b(?:ignore|disregard|forget)\s+(?:everything|all|anything)\s+"
    r"(?:(?:that\s+)?(?:was|came|is)\s+)?(?:above|before\s+this|you\s+(?:were|have\s+been)\s+told|you\s+know)\b"
    r"|\b(?:new|updated|real|actual)\s+system\s+(?:prompt|instructions?)\s*:"
    r"|\bsystem\s+prompt\s+(?:override|is\s+now)\b"
    r"|\byou\s+are\s+now\s+(?:an?\s+)?(?:DAN\b|unrestricted\b|jailbroken\b|uncensored\b"
    r"|in\s+(?:developer|admin|god|debug|jailbreak)\s+mode\b|no\s+longer\s+bound\b)"
    r"|\b(?:pretend|act|behave)\s+(?:as\s+(?:if|though)\s+|like\s+)?(?:that\s+)?you\s+(?:are|were|have)\s+"
    r"(?:no\s+(?:rules|restrictions|guidelines)|unrestricted|jailbroken)\b",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(
    r"\[/?INST\]|<\|/?(?:im_start|im_end|system|user|assistant|end|eot_id|start_header_id)\|>|<</?SYS>>"
)
_ROLE = re.compile(
    r"^[ \t]*(?:system|assistant|human)[ \t]*:|</?(?:system|assistant|human|user)(?:\s[^>]*)?>", re.I | re.M
)


def leave_out_orders(text: str, said: str = "") -> tuple[str, int]:
    """Return the text with orders to a model replaced by the marker, and how many there were.

    `said`: what the user typed; a phrase of it stays, it is the user's to say.
    """
    known = _flat(said)
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        if known and _flat(match.group()) in known:
            return match.group()
        count += 1
        return REMOVED

    return _TEMPLATE.sub(replace, _OVERRIDE.sub(replace, text)), count


def sanitise_memory(text: str, cap: int = LONGEST) -> str:
    """Return a memory as it may be shown to a model: normalised, without orders and role marks, at most `cap` long.

    Doing it twice changes nothing more (R-242).
    """
    text, before = unicodedata.normalize("NFKC", text), ""
    while before != text:
        before, text = text, _ROLE.sub(REMOVED, leave_out_orders(text)[0])
        if before == text:
            # A cut may end a word, and with it an order.
            text = unicodedata.normalize("NFKC", text[:cap])[:cap]
    return text


def _flat(text: str) -> str:
    return " ".join(text.casefold().split())
