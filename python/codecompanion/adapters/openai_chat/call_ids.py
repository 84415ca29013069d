"""Tool call ids as an endpoint takes them: a chat may come from another one, whose ids are of another form (R-542).

An id that fits stays as it is, because some gateways keep things in theirs. The others are hashed: the same id is
always the same, so calls and results still belong together, and what was sent once does not change (lesson 22).
"""

from __future__ import annotations

import hashlib
from typing import Literal

IdForm = Literal["any", "short", "letters"]
"""`short`: 40 characters at most (OpenAI). `letters`: nine letters and digits (Mistral)."""
MAX_ID_LENGTH = 40
_LETTERS = 9


def wire_id(call_id: str, form: IdForm) -> str:
    """Return the id in that form."""
    match form:
        case "short" if len(call_id) > MAX_ID_LENGTH:
            return _hashed(call_id)[:MAX_ID_LENGTH]
        case "letters" if not (len(call_id) == _LETTERS and call_id.isascii() and call_id.isalnum()):
            return _hashed(call_id)[:_LETTERS]
        case _:
            return call_id


def _hashed(call_id: str) -> str:
    return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()
