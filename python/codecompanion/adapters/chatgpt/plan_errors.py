"""Explains why a plan cannot be used, from the error codes on OpenAI's page “Errors and recovery”.

A code arrives as an error's `code`, in `{"detail": …}` before a stream opens, or inside a stream.
"""

from __future__ import annotations

import re
from typing import Literal

from codecompanion import errors
from codecompanion.adapters.chatgpt.provider import LOGIN_COMMAND, USAGE_PAGE
from codecompanion.formats.regex import regex

_CODE = regex(r"\b(?:subscription_sharing|chatpass_v2)_[a-z_]+", re.IGNORECASE)
Trouble = Literal["used up", "not eligible", "not known", "not supported", "no login"]
_TROUBLES: dict[str, Trouble] = {
    "subscription_sharing_usage_limit_exceeded": "used up",
    "subscription_sharing_user_not_eligible": "not eligible",
    "subscription_sharing_usage_unavailable": "not known",
    "subscription_sharing_user_unavailable": "not known",
    "subscription_sharing_unsupported_capability": "not supported",
    "subscription_sharing_route_not_supported": "not supported",
    "subscription_sharing_invalid_user": "no login",
    "chatpass_v2_scope_not_authorized": "no login",
    "chatpass_v2_invalid_authorization_context": "no login",
}


def trouble_of(error: errors.AdapterError) -> Trouble | None:
    """Return the reason why the plan cannot be used, or None if the error has another cause."""
    found = _CODE.search(f"{error.code} {error}")
    if found is None:
        return None
    word = found[0].lower()
    # An unknown code: a rule of the plan or of the sign-in.
    return _TROUBLES.get(word, "not supported" if word.startswith("subscription_sharing") else "not eligible")


def explain(name: str, error: errors.AdapterError) -> errors.AdapterError:
    """Return the error with a message for users of a plan; `name` is the adapter's name."""
    explained: errors.AdapterError
    word = _CODE.search(f"{error.code} {error}")
    match trouble_of(error):
        case "used up":
            told = f"{name}: the usage limit of your ChatGPT plan or of this app has been reached. See {USAGE_PAGE},"
            explained = errors.RateLimited(f"{told} or choose another adapter with ga.")
            explained.retryable, explained.brief = False, "the plan is used up"
        case "not eligible":
            told = f"{name}: OpenAI does not let this account use its ChatGPT plan here ({word[0] if word else ''})."
            explained = errors.AuthenticationFailed(f"{told} See {USAGE_PAGE}, or choose another adapter with ga.")
        case "not known":
            told = f"{name}: OpenAI cannot report the usage of your ChatGPT plan at the moment. Try again later"
            explained = errors.Overloaded(f"{told}, or choose another adapter with ga.")
        case "not supported":
            explained = errors.RequestRejected(
                f"{name}: OpenAI does not accept this request for a ChatGPT plan: {_without_name(name, error)}"
            )
        case "no login":
            explained = errors.AuthenticationFailed(
                f"{name}: OpenAI rejected the login for your ChatGPT plan. Log in again with {LOGIN_COMMAND}."
            )
        case None if error.status == 401:
            explained = errors.AuthenticationFailed(
                f"{name}: OpenAI refused the token it has just issued (401). Log in again with {LOGIN_COMMAND}."
            )
        case _:
            return error
    explained.status, explained.code = error.status, error.code
    return explained


def _without_name(name: str, error: errors.AdapterError) -> str:
    return str(error).removeprefix(f"{name}: ")
