"""A summary in the system's role for endpoints without such a role inside the list: Gemini's (R-146, pipeline.md 5.6).

It becomes something the user says and the model has understood, so that the roles still take turns.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from codecompanion.messages import Message

SYSTEM_CONTEXT = "[System context]\n"
UNDERSTOOD = "Understood."
_HOSTS = ("generativelanguage.googleapis.com", "aiplatform.googleapis.com")


def wants_pairs(base_url: str) -> bool:
    """Return whether the endpoint knows the system's role only at the front."""
    host = urlsplit(base_url).hostname or ""
    return any(host == known or host.endswith(("." + known, "-" + known)) for known in _HOSTS)


def is_inner_system(message: Message) -> bool:
    """Return whether the message is in the system's role and not the prompt itself."""
    return message.role == "system" and message.tag is not None


def pair_of(message: Message) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the two messages that stand for it."""
    return (
        {"role": "user", "content": SYSTEM_CONTEXT + message.text},
        {"role": "assistant", "content": UNDERSTOOD},
    )
