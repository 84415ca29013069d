"""Finds GitHub logins for Copilot, and stores the plugin's own login.

Search order: COPILOT_GITHUB_TOKEN (GitHub's own command line reads it); GITHUB_TOKEN in a Codespace; the plugin's own
file, readable only by its owner; then the files of Copilot's editor plugins: `github-copilot/apps.json` and
`hosts.json` below $XDG_CONFIG_HOME, ~/.config or %LOCALAPPDATA%, and `auth.db` of newer ones. Files of other plugins
are only read.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.adapters.private_file import write_private
from codecompanion.errors import MissingKey
from codecompanion.formats.outside_text import NOT_READABLE

LOGIN_FILE = "logins.json"
"""The name of the plugin's own login file in the host's data folder."""
_MAX_BYTES = 1_000_000
_DATABASE = "SELECT token_ciphertext FROM oauth_tokens WHERE auth_authority = ? LIMIT 1"
_TOKEN_STARTS = ("gho_", "ghu_", "ghp_", "github_pat_")


class Login(msgspec.Struct, frozen=True):
    """A GitHub token, and the name of its source for messages. No `repr`."""

    token: str
    where: str

    def __repr__(self) -> str:
        """Show only the source."""
        return f"Login({self.where!r})"


class Places(msgspec.Struct, frozen=True):
    """Search locations: the user's environment, the plugin's own file (or None), the host of the logins."""

    environ: Mapping[str, str]
    own: Path | None = None
    host: str = "github.com"

    def __repr__(self) -> str:
        """Return a fixed string, without the environment."""
        return "Places()"


def find_login(places: Places, name: str) -> Login:
    """Find the login (blocks); `name` is the adapter's name.

    Raises:
        MissingKey: not logged in; the message explains how to log in, and names files that could not be read.
    """
    unreadable: list[str] = []
    for login in _logins(places, unreadable):
        if _is_token(login.token):
            return login
        unreadable.append(f"{login.where} contains no token")
    seen = f" ({'; '.join(unreadable)})" if unreadable else ""
    error = MissingKey(f"{name}: not logged in to Copilot{seen}. Run :CodeCompanion login copilot.")
    error.brief = "not logged in; :CodeCompanion login copilot"
    raise error


def save_login(file: Path, host: str, token: str, user: str) -> None:
    """Store the plugin's own login in the file, readable only by its owner.

    Raises:
        OSError: the file cannot be written; existing content is unchanged.
    """
    kept = {**_read_own(file), host: {"oauth_token": token, "user": user}}
    write_private(file, msgspec.json.encode(kept))


def forget_login(file: Path) -> bool:
    """Remove the plugin's own login; return whether it existed. Logins of other plugins are kept."""
    existed = file.exists()
    file.unlink(missing_ok=True)
    return existed


def _logins(places: Places, unreadable: list[str]) -> Iterator[Login]:
    environ = places.environ
    if environ.get("COPILOT_GITHUB_TOKEN", "").strip():
        yield Login(environ["COPILOT_GITHUB_TOKEN"].strip(), "COPILOT_GITHUB_TOKEN")
    if environ.get("CODESPACES") and environ.get("GITHUB_TOKEN", "").strip():
        yield Login(environ["GITHUB_TOKEN"].strip(), "GITHUB_TOKEN")
    files = [] if places.own is None else [places.own]
    folders = config_folders(environ)
    files += [folder / name for folder in folders for name in ("apps.json", "hosts.json")]
    for file in files:
        token = _token_in(file, places.host, unreadable)
        if token is not None:
            yield Login(token, f"the file {file}")
    for folder in folders:
        token = _token_in_database(folder / "auth.db", places.host, unreadable)
        if token is not None:
            yield Login(token, f"the file {folder / 'auth.db'}")


def config_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the folders of Copilot's own plugins, likeliest first."""
    home = environ.get("HOME") or environ.get("USERPROFILE") or ""
    bases = [environ.get("XDG_CONFIG_HOME", ""), environ.get("LOCALAPPDATA", "")]
    bases += [f"{home}/.config", f"{home}/AppData/Local"] if home else []
    return [Path(base) / "github-copilot" for base in dict.fromkeys(bases) if base]


def _token_in(file: Path, host: str, unreadable: list[str]) -> str | None:
    """Return the token for the host in a plugin's file, or None."""
    try:
        with file.open("rb") as opened:
            logins = msgspec.json.decode(opened.read(_MAX_BYTES))
    except FileNotFoundError:
        return None
    except OSError as error:
        unreadable.append(f"{file} cannot be read: {(error.strerror or type(error).__name__).lower()}")
        return None
    except NOT_READABLE:
        unreadable.append(f"{file} is not JSON")
        return None
    for key, login in logins.items() if isinstance(logins, dict) else ():
        # apps.json: `github.com:Iv1.…`, hosts.json: `github.com`.
        if str(key).partition(":")[0] == host and isinstance(login, dict) and login.get("oauth_token"):
            return str(login["oauth_token"]).strip()
    return None


def _token_in_database(file: Path, host: str, unreadable: list[str]) -> str | None:
    if not file.is_file():
        return None
    try:
        with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=0.2)) as database:
            row = database.execute(_DATABASE, (host,)).fetchone()
    except sqlite3.Error as error:
        unreadable.append(f"{file} cannot be read: {error}")
        return None
    token = row[0].decode("utf-8", "replace") if row and isinstance(row[0], bytes) else row[0] if row else None
    # Only the plugin that wrote encrypted tokens can use them.
    return token if isinstance(token, str) and token.startswith(_TOKEN_STARTS) else None


def _is_token(token: str) -> bool:
    return bool(token) and token.isascii() and token.isprintable() and " " not in token and len(token) < 1000


def _read_own(file: Path) -> dict[str, Any]:
    try:
        kept = msgspec.json.decode(file.read_bytes())
    except (OSError, *NOT_READABLE):
        return {}
    return kept if isinstance(kept, dict) else {}
