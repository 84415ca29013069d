"""Logs in with ChatGPT: opens the page in the browser, exchanges the callback's code for tokens, and stores them.

For an account that logged in here before, its registration is used; a new account gets a new registration. The
registration is stored before the code is exchanged, so that a login that fails afterwards does not create another.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from codecompanion import errors
from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.chatgpt.callback import Attempt, Callback
from codecompanion.adapters.chatgpt.id_token import Identity, NotTrusted, read_identity
from codecompanion.adapters.chatgpt.listener import Listener
from codecompanion.adapters.chatgpt.provider import LOGIN_COMMAND, PLAN_SCOPE, USAGE_PAGE, Provider
from codecompanion.adapters.chatgpt.sign_in_server import SignInServer, Tokens, session_of
from codecompanion.adapters.chatgpt.stored_login import Account, Accounts, StoredLogin
from codecompanion.adapters.login_adapter import Forgotten, LoggedIn, LoginPage
from codecompanion.errors import AuthenticationFailed, InputError

LIFE_S = 600.0
"""Seconds to wait for the browser."""
NEW = "new"
_REVOKING_S = 10.0
_NOTICE = (
    "You're using your ChatGPT plan",
    f"This adapter's requests use your ChatGPT plan. Manage usage in your ChatGPT settings: {USAGE_PAGE}",
)
_DECLINED = "may not use your ChatGPT plan: log in again and grant access"


class ChatGPTLogin:
    """The login of one adapter; see `login_adapter.Login`. `stored` is None if the login cannot be stored."""

    def __init__(
        self,
        settings: AdapterSettings,
        provider: Provider,
        stored: StoredLogin | None,
        *,
        on_key: Callable[[str], None] = lambda key: None,
        clock: Callable[[], float] = time.time,
        life_s: float = LIFE_S,
    ) -> None:
        self._settings, self._provider, self._kept = settings, provider, stored
        self._on_key, self._clock, self._life_s = on_key, clock, life_s
        self._listener: Listener | None = None

    async def run(self, show: Callable[[LoginPage], None], account: str) -> LoggedIn:
        """Log in; see `login_adapter.Login.run`."""
        accounts = await self._read_accounts()
        asked = self._asked(accounts, account)
        server = SignInServer(self._settings, self._provider)
        try:
            pages = await server.pages()
            async with Listener(lambda port: self._attempt(port, asked)) as listener:
                self._listener = listener
                address = listener.attempt.page(
                    pages.authorization,
                    host_id=accounts.host_id,
                    login_hint=asked.user if asked and "@" in asked.user else "",
                    asks_again=bool(asked and asked.declined),
                )
                show(self._page(address, accounts, asked))
                callback = await self._callback(listener)
            return await self._finish(server, callback, listener.attempt, asked)
        finally:
            self._listener = None
            await server.aclose()

    def take(self, address: str) -> None:
        """Accept the URL that the browser was redirected to; raises `InputError`."""
        if self._listener is None:
            raise InputError(f"No login is in progress; {LOGIN_COMMAND} starts one.")
        self._listener.take(address)

    async def forget(self) -> Forgotten:
        """End the login here and at OpenAI; the registration is kept."""
        server = SignInServer(self._settings, self._provider)
        stored = self._required_login()
        try:
            async with stored.lock():
                session = await asyncio.to_thread(stored.session)
                await asyncio.to_thread(stored.forget)
            if session is None:
                return Forgotten(was_there=False)
            try:
                async with asyncio.timeout(_REVOKING_S):
                    is_told = await server.revoke(session)
            except TimeoutError:
                is_told = False
        except (OSError, TimeoutError) as error:
            raise self._save_error(error) from None
        finally:
            await server.aclose()
        note = "" if is_told else "OpenAI could not be notified: disconnect the app at https://chatgpt.com/settings"
        return Forgotten(was_there=True, note=note)

    # ---- before the browser

    async def _read_accounts(self) -> Accounts:
        stored = self._required_login()
        try:
            async with stored.lock():
                return await asyncio.to_thread(stored.accounts)
        except (OSError, TimeoutError) as error:
            raise self._save_error(error) from None

    def _asked(self, accounts: Accounts, name: str) -> Account | None:
        """Return the requested account, or None for a new account."""
        if name == NEW or not accounts.registered:
            return None
        if not name:
            return accounts.registered[0]
        found = accounts.names().get(name)
        if found is None:
            raise InputError(f"There is no account {name!r} here; the accounts are {', '.join(accounts.names())}.")
        return found

    def _attempt(self, port: int, asked: Account | None) -> Attempt:
        client_id = asked.client_id if asked else ""
        return Attempt(name=self._settings.name, issuer=self._provider.issuer, port=port, client_id=client_id)

    def _page(self, address: str, accounts: Accounts, asked: Account | None) -> LoginPage:
        names = accounts.names()
        own = next((name for name, account in names.items() if account is asked), "")
        others = tuple(name for name in names if name != own)
        return LoginPage(url=address, expires_s=round(self._life_s), redirects=True, account=own, accounts=others)

    async def _callback(self, listener: Listener) -> Callback:
        try:
            async with asyncio.timeout(self._life_s):
                return await listener.wait()
        except TimeoutError:
            minutes = max(1, round(self._life_s / 60))
            told = f"the browser did not return within {minutes} minutes. Nothing was changed; {LOGIN_COMMAND}"
            raise AuthenticationFailed(f"{self._settings.name}: {told} tries again.") from None

    # ---- after the browser

    async def _finish(
        self, server: SignInServer, callback: Callback, attempt: Attempt, asked: Account | None
    ) -> LoggedIn:
        self._on_key(callback.code)
        if asked is None:
            await self._keep_account(Account(client_id=callback.client_id))
        tokens = await server.exchange(callback, attempt)
        for secret in filter(None, (tokens.access, tokens.refresh, tokens.id_token)):
            self._on_key(secret)
        identity = self._identity(tokens, callback, attempt)
        if asked is not None and asked.subject not in ("", identity.subject):
            raise AuthenticationFailed(
                f"{self._settings.name}: this is not the account {asked.user or 'used before'}. Nothing was changed;"
                " press `a` in the login window to log in to another account."
            )
        welcomed = asked is not None and asked.welcomed
        account = Account(client_id=callback.client_id, subject=identity.subject, user=identity.user, welcomed=welcomed)
        return await self._keep(account, tokens)

    def _identity(self, tokens: Tokens, callback: Callback, attempt: Attempt) -> Identity:
        try:
            return read_identity(
                tokens.id_token,
                issuer=attempt.issuer,
                client_id=callback.client_id,
                now=self._clock(),
                nonce=attempt.nonce,
            )
        except NotTrusted as error:
            told = f"OpenAI sent an invalid ID token: {error}"
            raise AuthenticationFailed(f"{self._settings.name}: {told}. Nothing was changed.") from None

    async def _keep(self, account: Account, tokens: Tokens) -> LoggedIn:
        """Store the login or the fact that the plan was declined: only the token response lists the permissions."""
        name, stored = self._settings.name, self._required_login()
        if tokens.scopes is None:
            raise errors.MalformedReply(f"{name}: OpenAI's answer lists no permissions. Nothing was changed.")
        if PLAN_SCOPE not in tokens.scopes:
            await self._keep_account(msgspec.structs.replace(account, declined=True), ends_login=True)
            return LoggedIn(user=account.user, problem=f"{name} {_DECLINED}")
        if not tokens.access or not tokens.refresh:
            raise errors.MalformedReply(f"{name}: OpenAI's answer contains no tokens. Nothing was changed; try again.")
        session = session_of(
            tokens,
            client_id=account.client_id,
            subject=account.subject,
            user=account.user,
            scopes=tokens.scopes,
            clock=self._clock,
        )
        try:
            async with stored.lock():
                await asyncio.to_thread(stored.keep, session)
        except (OSError, TimeoutError) as error:
            raise self._save_error(error) from None
        await self._keep_account(msgspec.structs.replace(account, welcomed=True))
        return LoggedIn(user=account.user, notice=("", "") if account.welcomed else _NOTICE)

    async def _keep_account(self, account: Account, *, ends_login: bool = False) -> None:
        stored = self._required_login()
        try:
            async with stored.lock():
                accounts = await asyncio.to_thread(stored.accounts)
                await asyncio.to_thread(stored.keep_accounts, accounts.with_first(account))
                if ends_login:
                    await asyncio.to_thread(stored.forget)
        except (OSError, TimeoutError) as error:
            raise self._save_error(error) from None

    def _required_login(self) -> StoredLogin:
        if self._kept is None:
            raise InputError("Login not saved: the data folder cannot be used.")
        return self._kept

    def _save_error(self, error: OSError | TimeoutError) -> InputError:
        folder = self._required_login().file.parent
        if isinstance(error, TimeoutError) and not error.errno:
            return InputError("Another Neovim is changing the ChatGPT login; try again.")
        reason = (error.strerror or type(error).__name__).lower()
        return InputError(f"Login not saved: cannot write to {folder} ({reason}).")
