"""`:CodeCompanion login`: the login of an adapter that has no key, one at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.copilot.device_login import DeviceCode, DeviceLogin
from codecompanion.adapters.copilot.github import GitHub, github_of
from codecompanion.adapters.copilot.requests import GitHubRequests
from codecompanion.adapters.copilot.stored_login import forget_login, save_login
from codecompanion.errors import AdapterError, InputError
from codecompanion.session.services import Services
from codecompanion.wire.events import LoginCode
from codecompanion.wire.requests import Login


class Logins:
    """Logs in, stops that, and forgets a login. It ends with the host."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._running: asyncio.Task[dict[str, Any]] | None = None

    async def carry_out(self, request: Login) -> dict[str, Any]:
        """Return `{user, models, problem}` of who is logged in now, `{forgotten}` for `forget`, {} for `stop`.

        Raises:
            CodeCompanionError: it was stopped or failed; the logins are as they were.
        """
        settings = self._settings(request.adapter)
        file = self._services.adapters.logins
        if file is None:
            raise InputError("There is no folder to keep a login in.")
        self.stop()
        match request.action:
            case "stop":
                return {}
            case "forget":
                forgotten = await asyncio.to_thread(forget_login, file)
                self._services.adapters.forget_login(settings.name)
                return {"forgotten": forgotten}
            case "start":
                return await self._started(settings, file)

    def stop(self) -> None:
        """End the login that is running, if there is one."""
        if self._running is not None:
            self._running.cancel()

    async def _started(self, settings: AdapterSettings, file: Path) -> dict[str, Any]:
        self._running = task = asyncio.create_task(self._log_in(settings, file))
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                task.cancel()
                raise
        finally:
            if self._running is task:
                self._running = None
        raise InputError("The login was stopped. Nothing was changed.")

    async def _log_in(self, settings: AdapterSettings, file: Path) -> dict[str, Any]:
        github, adapters = github_of(settings), self._services.adapters
        web, api = GitHubRequests(settings, github.web), GitHubRequests(settings, github.api)

        def show(code: DeviceCode) -> None:
            self._services.emit(
                LoginCode(adapter=settings.name, code=code.code, url=code.url, expires_s=code.expires_s)
            )

        try:
            token = await DeviceLogin(settings.name, github, web).run(show)
            user = await _user(api, token)
            await _save(file, github, token, user)
        finally:
            await web.aclose()
            await api.aclose()
        adapters.forget_login(settings.name)
        try:
            models = await adapters.get(settings.name).list_models()
        except AdapterError as error:
            return {"user": user, "models": 0, "problem": str(error)}
        return {"user": user, "models": len(models), "problem": ""}

    def _settings(self, name: str) -> AdapterSettings:
        settings = self._services.adapters.settings(name)
        if settings.kind != "copilot":
            raise InputError(f"{name} has no login. Its key is read from the place in its configuration (ga shows it).")
        return settings


async def _user(api: GitHubRequests, token: str) -> str:
    """Return who has logged in, "" when GitHub does not say."""
    try:
        return str((await api.ask("GET", "/user", token=token, where="the login")).get("login") or "")
    except AdapterError:
        return ""


async def _save(file: Path, github: GitHub, token: str, user: str) -> None:
    try:
        await asyncio.to_thread(save_login, file, github.host, token, user)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(f"The login could not be kept: {file} cannot be written ({reason}).") from None
