"""Logs in to GitHub for Copilot with the device flow, and stores the login in the plugin's own file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.copilot.device_login import DeviceCode, DeviceLogin
from codecompanion.adapters.copilot.github import GitHub
from codecompanion.adapters.copilot.github_requests import GitHubRequests
from codecompanion.adapters.copilot.stored_login import forget_login, save_login
from codecompanion.adapters.login_adapter import Forgotten, LoggedIn, LoginPage
from codecompanion.errors import AdapterError, InputError


class CopilotLogin:
    """The login of one adapter; see `login_adapter.Login`. `file` is None if the login cannot be stored."""

    def __init__(self, settings: AdapterSettings, github: GitHub, file: Path | None) -> None:
        self._settings, self._github, self._file = settings, github, file

    async def run(self, show: Callable[[LoginPage], None], account: str) -> LoggedIn:
        """Log in with a code that the user enters on GitHub's page; the user chooses the account there."""
        file = _required_file(self._file)
        web = GitHubRequests(self._settings, self._github.web)
        api = GitHubRequests(self._settings, self._github.api)

        def show_code(code: DeviceCode) -> None:
            show(LoginPage(url=code.url, code=code.code, expires_s=code.expires_s))

        try:
            token = await DeviceLogin(self._settings.name, self._github, web).run(show_code)
            user = await _user(api, token)
            await _save(file, self._github, token, user)
        finally:
            await web.aclose()
            await api.aclose()
        return LoggedIn(user=user)

    def take(self, address: str) -> None:
        """Refuse the URL: GitHub's page has no callback."""
        raise InputError(f"The {self._settings.name} login uses a code that you enter at GitHub, not an address.")

    async def forget(self) -> Forgotten:
        """Remove the plugin's own login; logins of other plugins are kept."""
        was_there = await asyncio.to_thread(forget_login, _required_file(self._file))
        return Forgotten(was_there=was_there, note="logins of other plugins are kept")


def _required_file(file: Path | None) -> Path:
    if file is None:
        raise InputError("Login not saved: the data folder cannot be used.")
    return file


async def _user(api: GitHubRequests, token: str) -> str:
    """Return the name of the logged-in user, or "" if GitHub does not provide it."""
    try:
        return str((await api.ask("GET", "/user", token=token, where="the login")).get("login") or "")
    except AdapterError:
        return ""


async def _save(file: Path, github: GitHub, token: str, user: str) -> None:
    try:
        await asyncio.to_thread(save_login, file, github.host, token, user)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(f"Login not saved: cannot write to {file} ({reason}).") from None
