"""Reads the browser's callback for one login attempt: the URL that the sign-in page redirects to."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from urllib.parse import parse_qs, urlencode

import msgspec

from codecompanion.adapters.chatgpt.provider import APP_NAME, CALLBACK_PATH, NEW_CLIENT, RESOURCE, SCOPES
from codecompanion.errors import AuthenticationFailed
from codecompanion.formats.regex import regex

_CLIENT = regex(r"[A-Za-z0-9_-]{1,200}")
_WORD = regex(r"[a-z][a-z0-9_.-]{0,63}", re.IGNORECASE)
MAX_FIELDS = 20


def _random() -> str:
    return secrets.token_urlsafe(32)


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One login attempt: its secrets and its client id. `client_id` "" requests a new registration. No `repr`."""

    name: str
    issuer: str
    port: int
    client_id: str = ""
    state: str = msgspec.field(default_factory=_random)
    nonce: str = msgspec.field(default_factory=_random)
    verifier: str = msgspec.field(default_factory=_random)

    def __repr__(self) -> str:
        """Show only the callback URL."""
        return f"Attempt({self.redirect!r})"

    @property
    def redirect(self) -> str:
        """Return the callback URL on this machine; OpenAI does not accept `localhost` in it."""
        return f"http://127.0.0.1:{self.port}{CALLBACK_PATH}"

    def page(self, endpoint: str, *, host_id: str, login_hint: str = "", asks_again: bool = False) -> str:
        """Return the URL of the sign-in page. `asks_again` asks again for a permission that the user refused before."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()
        fields = {
            "response_type": "code",
            "client_id": self.client_id or NEW_CLIENT,
            "redirect_uri": self.redirect,
            "scope": SCOPES,
            "resource": RESOURCE,
            "state": self.state,
            "nonce": self.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "ext_agent_host_id": host_id,
        }
        if not self.client_id:
            fields["agent_name_hint"] = APP_NAME
        if login_hint:
            fields["login_hint"] = login_hint
        if asks_again:
            fields["prompt"] = "consent"
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(fields)}"


class Callback(msgspec.Struct, frozen=True):
    """The result of an approved login: a code, valid for one exchange, and the client id it was issued to."""

    code: str
    client_id: str

    def __repr__(self) -> str:
        """Show the id only."""
        return f"Callback({self.client_id!r})"


class OtherLogin(Exception):
    """Raised for a URL that does not belong to this attempt, which keeps waiting."""


def read_callback(query: str, attempt: Attempt) -> Callback:
    """Return the callback's result; `query` is the part after the `?`.

    Raises:
        OtherLogin: the state does not match the attempt.
        AuthenticationFailed: the state matches, but the user or OpenAI declined.
    """
    try:
        fields = parse_qs(query, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise OtherLogin from None
    state = fields.get("state", [])
    if len(state) != 1 or not hmac.compare_digest(state[0].encode("utf-8", "replace"), attempt.state.encode()):
        raise OtherLogin
    if any(len(values) > 1 for values in fields.values()):
        raise _failed(attempt, "OpenAI's page returned a parameter twice")
    told = {name: values[0] for name, values in fields.items()}
    if told.get("iss", attempt.issuer) != attempt.issuer:
        raise _failed(attempt, "the redirect came from another issuer")
    if "error" in told:
        raise _declined(attempt, told["error"])
    client_id = told.get("client_id") or attempt.client_id
    if not told.get("code") or not _CLIENT.fullmatch(client_id) or client_id == NEW_CLIENT:
        raise _failed(attempt, "OpenAI's page returned no code or client ID")
    if attempt.client_id and client_id != attempt.client_id:
        raise _failed(attempt, "OpenAI's page returned a different client ID")
    return Callback(told["code"], client_id)


def _declined(attempt: Attempt, word: str) -> AuthenticationFailed:
    if word == "access_denied":
        return AuthenticationFailed(f"{attempt.name}: you declined the login on ChatGPT's page. Nothing was changed.")
    code = f" ({word})" if _WORD.fullmatch(word) else ""
    return _failed(attempt, f"OpenAI refused the login{code}")


def _failed(attempt: Attempt, what: str) -> AuthenticationFailed:
    return AuthenticationFailed(f"{attempt.name}: {what}. Nothing was changed; try again.")
