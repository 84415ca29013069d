"""Stores the ChatGPT login in the host's data folder, readable only by its owner.

`chatgpt.json` contains the tokens of the current account and exists while a user is logged in. The other file has no
secrets: the id of this installation (`ext_agent_host_id`), and OpenAI's registrations of the accounts that logged in
here, which are reused. Reading and writing block; a writer must hold the lock.
"""

from __future__ import annotations

import uuid
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeVar

import msgspec

from codecompanion.adapters.file_lock import locked
from codecompanion.adapters.private_file import write_private
from codecompanion.errors import InputError
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE

LOGIN_FILE = "chatgpt.json"
ACCOUNTS_FILE = "chatgpt-accounts.json"
LOCK_FILE = "chatgpt.lock"
LOCK_LIMIT_S = 45.0
"""Seconds to wait for the lock; longer than a token request may take."""
_MAX_BYTES = 1_000_000
Kept = TypeVar("Kept")


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A login. `expires_at`: expiry of the access token in seconds since 1970, by this machine's clock. No `repr`."""

    client_id: str
    subject: str
    user: str = ""
    access_token: str
    refresh_token: str
    expires_at: float
    scopes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show only the user."""
        return f"Session({self.user!r})"


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A registration: one account in one workspace. `subject` is "" if its first login was not completed.

    `declined`: the plan was not granted at the last login. `welcomed`: the user was notified that the plan is used.
    """

    client_id: str
    subject: str = ""
    user: str = ""
    declined: bool = False
    welcomed: bool = False


class Accounts(msgspec.Struct, frozen=True, kw_only=True):
    """This installation and its registrations, most recently used first."""

    host_id: str
    registered: tuple[Account, ...] = ()

    def names(self) -> dict[str, Account]:
        """Return the accounts by their readable names; duplicate names get a number."""
        named: dict[str, Account] = {}
        for number, account in enumerate(self.registered, 1):
            name = account.user or f"account {number}"
            named[f"{name} ({number})" if name in named else name] = account
        return named

    def with_first(self, account: Account) -> Accounts:
        """Return the accounts with this one first, replacing any with the same id."""
        others = [other for other in self.registered if other.client_id != account.client_id]
        return Accounts(host_id=self.host_id, registered=(account, *others))


class StoredLogin:
    """Reads and writes the login files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / LOGIN_FILE
        self._accounts, self._lock = folder / ACCOUNTS_FILE, folder / LOCK_FILE

    def lock(self) -> AbstractAsyncContextManager[None]:
        """Return the lock that any Neovim must hold while it changes the login; see `file_lock.locked`."""
        return locked(self._lock, LOCK_LIMIT_S)

    def session(self) -> Session | None:
        """Return the login, or None.

        Raises:
            InputError: the file cannot be read; the message names it.
        """
        return _read(self.file, Session)

    def keep(self, session: Session) -> None:
        """Store the login, replacing the previous one; raises OSError."""
        write_private(self.file, msgspec.json.encode(session))

    def forget(self) -> None:
        """Remove the login; the registration is kept."""
        self.file.unlink(missing_ok=True)

    def accounts(self) -> Accounts:
        """Return the registrations; the first call creates the id of this installation and stores it.

        Raises:
            InputError: the file cannot be read; the message names it.
            OSError: the file cannot be written.
        """
        found = _read(self._accounts, Accounts)
        if found is None:
            found = Accounts(host_id=uuid.uuid4().urn)
            self.keep_accounts(found)
        return found

    def keep_accounts(self, accounts: Accounts) -> None:
        """Store the registrations; raises OSError."""
        write_private(self._accounts, msgspec.json.encode(accounts))


def scopes_of(text: str) -> tuple[str, ...]:
    """Split a `scope` into its permissions."""
    return tuple(dict.fromkeys(text.split()))


def _read(file: Path, kind: type[Kept]) -> Kept | None:
    try:
        with file.open("rb") as opened:
            return typed.read_json(opened.read(_MAX_BYTES), type=kind)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {(error.strerror or type(error).__name__).lower()}.") from None
    except NOT_READABLE:
        raise InputError(f"{file} is damaged. Remove it and log in again.") from None
