"""Implements `:CodeCompanion login`: logs in to adapters that have no key, one at a time."""

from __future__ import annotations

import asyncio
from typing import Any

from codecompanion.adapters.login_adapter import Login, LoginPage
from codecompanion.errors import AdapterError, InputError
from codecompanion.session.services import Services
from codecompanion.waiting import stoppable
from codecompanion.wire import requests
from codecompanion.wire.events import LoginCode


class Logins:
    """Starts, cancels and removes logins. A running login ends with the host."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._running: asyncio.Task[dict[str, Any]] | None = None

    async def carry_out(self, request: requests.Login) -> dict[str, Any]:
        """Carry out a login request; return the logged-in user, whether a login was removed, or {}.

        Raises:
            CodeCompanionError: the login was cancelled or failed; the stored logins are unchanged.
        """
        name = request.adapter
        login = self._services.adapters.with_login(name).login()
        match request.action:
            case "answer":
                login.take(request.address)
                return {}
            case "stop":
                self.stop()
                return {}
            case "forget":
                self.stop()
                forgotten = await login.forget()
                self._services.adapters.forget_login(name)
                return {"forgotten": forgotten.was_there, "note": forgotten.note}
            case "start":
                self.stop()
                return await self._started(name, login, request.account)

    def stop(self) -> None:
        """Cancel the running login, if there is one."""
        if self._running is not None:
            self._running.cancel()

    async def _started(self, name: str, login: Login, account: str) -> dict[str, Any]:
        self._running = task = asyncio.create_task(self._log_in(name, login, account))
        try:
            return await stoppable(task, InputError("Login cancelled. Nothing was changed."))
        finally:
            if self._running is task:
                self._running = None

    async def _log_in(self, name: str, login: Login, account: str) -> dict[str, Any]:
        def show(page: LoginPage) -> None:
            self._services.emit(
                LoginCode(
                    adapter=name,
                    code=page.code,
                    url=page.url,
                    expires_s=page.expires_s,
                    redirects=page.redirects,
                    account=page.account,
                    accounts=page.accounts,
                )
            )

        adapters = self._services.adapters
        done = await login.run(show, account)
        adapters.forget_login(name)
        models, problem = 0, done.problem
        if not problem:
            try:
                models = len(await adapters.get(name).list_models())
            except AdapterError as error:
                problem = str(error)
        title, text = done.notice
        return {"user": done.user, "models": models, "problem": problem, "notice": {"title": title, "text": text}}
