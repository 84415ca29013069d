"""Converts tool call ids to the form an endpoint accepts: a chat may have ids from another endpoint (R-542).

A valid id is unchanged, because some gateways store data in ids. Other ids are hashed: the result depends only on
the id, so calls and results still belong together, and a sent request does not change (lesson 22).
"""

from __future__ import annotations

import hashlib
from typing import Literal

IdForm = Literal["any", "short", "letters"]
"""A form of call ids. `short`: at most 40 characters (OpenAI). `letters`: nine letters or digits (Mistral)."""
MAX_ID_LENGTH = 40
_LETTERS = 9


def wire_id(call_id: str, form: IdForm) -> str:
    """Return the id in the given form."""
    match form:
        case "short" if len(call_id) > MAX_ID_LENGTH:
            return _hashed(call_id)[:MAX_ID_LENGTH]
        case "letters" if not (len(call_id) == _LETTERS and call_id.isascii() and call_id.isalnum()):
            return _hashed(call_id)[:_LETTERS]
        case _:
            return call_id


def _hashed(call_id: str) -> str:
    return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()
