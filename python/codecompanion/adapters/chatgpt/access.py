"""Provides the access token for requests: renewed before it expires, by one Neovim at a time, and never lost.

A refresh token is valid once and yields the next one. The renewing process therefore holds a lock between processes,
reads the login again first (another Neovim may have renewed it), and stores the response before any other use.
Cancelling the request that triggered a renewal does not cancel the renewal. Failures of the network or of OpenAI change
nothing; only the refusals that OpenAI's page calls final end the login. If a host is killed after OpenAI has issued the
new token and before the token has arrived here, the user must log in again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from codecompanion import errors
from codecompanion.adapters.chatgpt.id_token import NotTrusted, read_identity
from codecompanion.adapters.chatgpt.provider import LOGIN_COMMAND, PLAN_SCOPE, Provider
from codecompanion.adapters.chatgpt.sign_in_server import ENDED, SignInServer, Tokens, session_of
from codecompanion.adapters.chatgpt.stored_login import Session, StoredLogin

_log = logging.getLogger(__name__)
EARLY_S = 120.0
"""Seconds before expiry at which tokens are renewed; OpenAI's tokens are valid for an hour."""
_LAST_WAIT_S = 1.0
"""Seconds that a stopping host waits for a renewal; Neovim kills the host soon after."""


class ChatGPTAccess:
    """Provides the access token for one adapter. `on_key` receives the secrets, so that they are redacted."""

    def __init__(
        self,
        name: str,
        provider: Provider,
        server: SignInServer,
        stored: StoredLogin | None,
        *,
        on_key: Callable[[str], None] = lambda key: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name, self._provider, self._server, self._stored = name, provider, server, stored
        self._on_key, self._clock = on_key, clock
        self._renewal: asyncio.Task[str] | None = None
        self._unkept: Session | None = None
        self._refused = ""

    async def token(self) -> str:
        """Return the access token, or a new one if it is about to expire or was refused.

        Raises:
            AdapterError: there is no login, permission or network; the message names the remedy.
        """
        session = await asyncio.to_thread(self._session)
        if self._is_good(session):
            return session.access_token
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew(session, self._required_login()))
            self._renewal.add_done_callback(_log_renewal_error)
        return await asyncio.shield(self._renewal)

    def refuse(self, token: str) -> None:
        """Mark the token as refused, so that the next request uses another."""
        self._refused = token

    def forget(self) -> None:
        """Discard the cached login, because the stored login was created or removed."""
        self._refused, self._unkept = "", None

    async def aclose(self) -> None:
        """Wait for a renewal in progress to store its result, then close the connections."""
        if self._renewal is not None and not self._renewal.done():
            await asyncio.wait([self._renewal], timeout=_LAST_WAIT_S)
            self._renewal.cancel()
        await self._server.aclose()

    def _is_good(self, session: Session, early_s: float = EARLY_S) -> bool:
        return session.access_token != self._refused and self._clock() < session.expires_at - early_s

    def _session(self) -> Session:
        """Return the stored login, or the current login if it could not be stored (blocks)."""
        session = self._unkept
        if session is None and self._stored is not None:
            try:
                session = self._stored.session()
            except errors.InputError as error:
                raise errors.MissingKey(f"{self._name}: {error}") from None
        if session is None:
            raise self._missing()
        self._on_key(session.access_token)
        self._on_key(session.refresh_token)
        return session

    def _missing(self) -> errors.MissingKey:
        missing = errors.MissingKey(f"{self._name}: not logged in to ChatGPT. Run {LOGIN_COMMAND}.")
        missing.brief = f"not logged in; {LOGIN_COMMAND}"
        return missing

    def _required_login(self) -> StoredLogin:
        if self._stored is None:
            raise self._missing()
        return self._stored

    async def _renew(self, seen: Session, stored: StoredLogin) -> str:
        try:
            async with stored.lock():
                session = await asyncio.to_thread(self._session)
                if session.access_token != seen.access_token and self._is_good(session):
                    return session.access_token
                return await self._renewed(session, stored)
        except TimeoutError:
            error: errors.AdapterError = errors.NetworkFailed(
                f"{self._name}: another Neovim is still refreshing the login. Try again."
            )
        except OSError as caught:
            reason = (caught.strerror or type(caught).__name__).lower()
            where = f"cannot write to {stored.file.parent} ({reason})"
            error = errors.MissingKey(f"{self._name}: login not renewed: {where}.")
        raise error

    async def _renewed(self, session: Session, stored: StoredLogin) -> str:
        """Renew and store the login, then return its access token; the caller holds the lock."""
        try:
            tokens = await self._server.refresh(session)
        except errors.AdapterError as caught:
            if caught.code in ENDED:
                await asyncio.to_thread(stored.forget)
                self._unkept = None
                raise self._ended("has expired", caught.code) from None
            if self._is_good(session, early_s=0.0):
                _log.info("the login was not renewed; it is still valid: %s", caught)
                return session.access_token
            raise
        fresh = self._next(session, tokens)
        self._on_key(fresh.access_token)
        self._on_key(fresh.refresh_token)
        try:
            await asyncio.to_thread(stored.keep, fresh)
            self._unkept = None
        except OSError as error:
            self._unkept = fresh
            _log.warning("the renewed login could not be saved to %s: %s", stored.file, error.strerror)
        problem = self._problem(fresh, tokens)
        if problem:
            self._unkept = None
            await asyncio.to_thread(stored.forget)
            raise self._ended(problem)
        return fresh.access_token

    def _next(self, session: Session, tokens: Tokens) -> Session:
        if not tokens.access:
            raise errors.MalformedReply(f"{self._name}: OpenAI's answer contains no token. Try again.")
        return session_of(
            # If the response has no new refresh token, the old one stays valid (RFC 6749, 6).
            tokens if tokens.refresh else Tokens(tokens.access, session.refresh_token, tokens.lives_s, None, ""),
            client_id=session.client_id,
            subject=session.subject,
            user=session.user,
            scopes=session.scopes if tokens.scopes is None else tokens.scopes,
            clock=self._clock,
        )

    def _problem(self, session: Session, tokens: Tokens) -> str:
        """Check the permissions and the account of a renewed login; return why it may not be used, or ""."""
        if PLAN_SCOPE not in session.scopes:
            return "no longer allows using your plan"
        if not tokens.id_token:
            return ""
        now, issuer = self._clock(), self._provider.issuer
        try:
            told = read_identity(tokens.id_token, issuer=issuer, client_id=session.client_id, now=now)
        except NotTrusted as error:
            return f"returned an invalid ID token: {error}"
        return "" if told.subject == session.subject else "is for another account"

    def _ended(self, what: str, code: str = "") -> errors.AuthenticationFailed:
        told = f"{self._name}: the ChatGPT login {what}{f' ({code})' if code else ''}."
        error = errors.AuthenticationFailed(f"{told} Log in again with {LOGIN_COMMAND}.")
        error.code, error.brief = code, f"the login has expired; {LOGIN_COMMAND}"
        return error


def _log_renewal_error(renewal: asyncio.Task[str]) -> None:
    """Log the error of a finished renewal, whose caller may have been cancelled."""
    if not renewal.cancelled() and renewal.exception() is not None:
        _log.info("the login was not renewed: %s", renewal.exception())
