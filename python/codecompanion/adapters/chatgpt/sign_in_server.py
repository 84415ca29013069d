"""Sends requests to the token server: discovery, code exchange, token refresh, revocation.

The URLs come from the server's discovery document and are used only if they are on the issuer's own host. Requests for
tokens are not repeated: a code and a refresh token can be used only once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from codecompanion import errors
from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.chatgpt.callback import Attempt, Callback
from codecompanion.adapters.chatgpt.provider import LOGIN_COMMAND, RESOURCE, Provider
from codecompanion.adapters.chatgpt.stored_login import Session, scopes_of
from codecompanion.adapters.http.json_requests import JsonRequests
from codecompanion.formats.regex import regex

DISCOVERY_PATH = "/.well-known/openid-configuration"
ENDED = frozenset(
    [
        *("invalid_grant", "invalid_refresh_token", "token_expired", "refresh_token_expired"),
        *("refresh_token_invalidated", "refresh_token_reused"),
    ]
)
"""Error codes of a refresh that are final: the user has to log in again."""
_FORM = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
_WORD = regex(r"[a-z][a-z0-9_.-]{0,63}", re.IGNORECASE)
_PASSING = (408, 425, 429)


class Pages(msgspec.Struct, frozen=True):
    """URLs in the discovery document; `revocation` is "" if it names none."""

    authorization: str
    token: str
    revocation: str = ""


class Tokens(msgspec.Struct, frozen=True):
    """A response of the token endpoint. `access` is "" if it is missing, `scopes` None if unspecified. No `repr`."""

    access: str
    refresh: str
    lives_s: float
    scopes: tuple[str, ...] | None
    id_token: str

    def __repr__(self) -> str:
        """Show only the granted scopes."""
        return f"Tokens({self.scopes!r})"


class SignInServer:
    """Sends one adapter's requests to its token server."""

    def __init__(self, settings: AdapterSettings, provider: Provider) -> None:
        self._name, self._provider = settings.name, provider
        self._requests = JsonRequests(settings, provider.issuer, whose="OpenAI")
        self._pages: Pages | None = None

    async def pages(self) -> Pages:
        """Return the URLs in the discovery document, which is read once.

        Raises:
            AdapterError: the document is unavailable, or names URLs on another host.
        """
        if self._pages is None:
            told = await self._requests.ask("GET", DISCOVERY_PATH, headers={"accept": "application/json"})
            wanted = [told.get("authorization_endpoint"), told.get("token_endpoint")]
            revocation = told.get("revocation_endpoint") or ""
            addresses = [*wanted, *([revocation] if revocation else [])]
            if told.get("issuer") != self._provider.issuer or not all(map(self._provider.is_own_url, addresses)):
                raise errors.MalformedReply(
                    f"{self._name}: {self._provider.issuer} returned no sign-in address. Check the proxy."
                )
            self._pages = Pages(*map(str, addresses))
        return self._pages

    async def exchange(self, callback: Callback, attempt: Attempt) -> Tokens:
        """Exchange the code of a login for tokens.

        Raises:
            AdapterError: the exchange failed; the message asks the user to log in again.
        """
        form = {
            "grant_type": "authorization_code",
            "client_id": callback.client_id,
            "code": callback.code,
            "code_verifier": attempt.verifier,
            "redirect_uri": attempt.redirect,
            "resource": RESOURCE,
        }
        return self._tokens(await self._ask_for_tokens(form, callback.code, attempt.verifier))

    async def refresh(self, session: Session) -> Tokens:
        """Return new tokens for a login, which invalidates the old refresh token.

        Raises:
            AdapterError: the refresh failed; with a `code` in `ENDED` the login has ended.
        """
        form = {
            "grant_type": "refresh_token",
            "client_id": session.client_id,
            "refresh_token": session.refresh_token,
            "resource": RESOURCE,
        }
        return self._tokens(await self._ask_for_tokens(form, session.refresh_token))

    async def revoke(self, session: Session) -> bool:
        """End the login at OpenAI, in at most two attempts; return whether that succeeded."""
        form = {"token": session.refresh_token, "token_type_hint": "refresh_token", "client_id": session.client_id}
        for _ in range(2):
            try:
                page = (await self.pages()).revocation
                if not page:
                    return False
                await self._requests.ask(
                    "POST", page, headers=_FORM, content=_encoded(form), secrets=(session.refresh_token,),
                    is_empty_fine=True,
                )  # fmt: skip
            except errors.AdapterError as error:
                if not error.retryable:
                    return False
            else:
                return True
        return False

    async def aclose(self) -> None:
        """Close the connections."""
        await self._requests.aclose()

    async def _ask_for_tokens(self, form: Mapping[str, str], *secrets: str) -> dict[str, Any]:
        page = (await self.pages()).token
        return await self._requests.ask(
            "POST", page, headers=_FORM, content=_encoded(form), secrets=secrets, explain=self._explain
        )

    def _explain(self, status: int, body: object) -> errors.AdapterError | None:
        """Return the error for a refusal, or None for server errors and temporary failures, reported as usual."""
        if status >= 500 or status in _PASSING:
            return None
        said = body.get("error") if isinstance(body, Mapping) else None
        code = said.get("code") if isinstance(said, Mapping) else said
        word = code if isinstance(code, str) and _WORD.fullmatch(code) else ""
        told = f"OpenAI refused the login ({status}{f', {word}' if word else ''}). Log in again with {LOGIN_COMMAND}."
        error = errors.AuthenticationFailed(f"{self._name}: {told}")
        error.code = word
        return error

    def _tokens(self, answer: Mapping[str, Any]) -> Tokens:
        access, refresh = (_token(answer, name) for name in ("access_token", "refresh_token"))
        lives, scope = answer.get("expires_in"), answer.get("scope")
        is_whole = isinstance(lives, int | float) and not isinstance(lives, bool) and 0 < lives < 10**9
        if access and not (is_whole and str(answer.get("token_type")).lower() == "bearer"):
            raise errors.MalformedReply(f"{self._name}: OpenAI's answer contains no usable tokens.")
        scopes = scopes_of(scope) if isinstance(scope, str) else None
        lives_s = float(lives) if is_whole and lives is not None else 0.0
        return Tokens(access, refresh, lives_s, scopes, str(answer.get("id_token") or ""))


def session_of(
    tokens: Tokens, *, client_id: str, subject: str, user: str, scopes: tuple[str, ...],
    clock: Callable[[], float] = time.time,
) -> Session:  # fmt: skip
    """Return the login for these tokens; `clock` returns seconds since 1970."""
    return Session(
        client_id=client_id,
        subject=subject,
        user=user,
        access_token=tokens.access,
        refresh_token=tokens.refresh,
        expires_at=clock() + tokens.lives_s,
        scopes=scopes,
    )


def _token(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    fits = isinstance(value, str) and value.isascii() and value.isprintable() and " " not in value
    return str(value) if fits else ""


def _encoded(form: Mapping[str, str]) -> bytes:
    return urlencode(form).encode()
