"""The adapter for a ChatGPT plan: gets a valid token before each request, and uses only the plan's two URLs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from codecompanion import errors
from codecompanion.adapters.base import AdapterSettings, BlobReader, ChatRequest
from codecompanion.adapters.chatgpt.access import ChatGPTAccess
from codecompanion.adapters.chatgpt.login import ChatGPTLogin
from codecompanion.adapters.chatgpt.plan_errors import explain, trouble_of
from codecompanion.adapters.chatgpt.provider import provider_of
from codecompanion.adapters.chatgpt.sign_in_server import SignInServer
from codecompanion.adapters.chatgpt.stored_login import StoredLogin
from codecompanion.adapters.chatgpt.wire import PlanResponses, check_entry
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.login_adapter import LoginAdapter
from codecompanion.adapters.wire_format import origin_of
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import AdapterError


class ChatGPTAdapter(LoginAdapter):
    """Sends requests that a ChatGPT plan pays for."""

    def __init__(
        self, settings: AdapterSettings, wire: PlanResponses, access: ChatGPTAccess, login: ChatGPTLogin
    ) -> None:
        super().__init__(settings)
        self.origin = origin_of(wire.origin_name, settings.base_url)
        self._wire, self._access, self._login = wire, access, login
        self._models: list[str] = []
        # The key is the token; OpenAI's organisation in the environment does not apply.
        entry = msgspec.structs.replace(settings, key="the ChatGPT login", options={})
        self._connection = HttpAdapter(entry, wire, read_key=lambda _: "", is_final=_is_final)

    def login(self) -> ChatGPTLogin:
        """Return the ChatGPT login."""
        return self._login

    def limits(self, model: str) -> ModelLimits | None:
        """Return the model's limits from the model list; "" means the model that a chat starts with."""
        return self._wire.limits(model or self.default_model or next(iter(self._models), ""))

    def forget_login(self) -> None:
        """Read the login and the account's models again before the next request."""
        self._access.forget()
        super().forget_login()

    async def aclose(self) -> None:
        """Close the connections."""
        await asyncio.gather(self._access.aclose(), self._connection.aclose())

    async def _renew(self) -> str:
        token = await self._access.token()
        self._connection.use_key(token)
        return token

    def _refused(self, token: str) -> None:
        self._access.refuse(token)

    async def _list(self) -> list[str]:
        try:
            self._models = await self._connection.list_models()
        except AdapterError as caught:
            error = self._explained(caught)
        else:
            return self._models
        raise error

    def _wanted(self, request: ChatRequest) -> ChatRequest:
        model = request.model or self.default_model or next(iter(self._models), "")
        if not model:
            raise errors.ModelNotFound(
                f"{self.name}: no model is configured and OpenAI lists none for your plan. Choose one with ga."
            )
        self.default_model = self.default_model or model
        return msgspec.structs.replace(request, model=model)

    def _serving(self, model: str) -> HttpAdapter:
        return self._connection

    def _explained(self, error: AdapterError) -> AdapterError:
        return explain(self.name, error)


def make_chatgpt(
    settings: AdapterSettings,
    read_blob: BlobReader,
    folder: Path | None,
    *,
    on_key: Callable[[str], None] = lambda key: None,
    clock: Callable[[], float] = time.time,
) -> ChatGPTAdapter:
    """Return the adapter for an entry; the login is in `folder`.

    Raises:
        ConfigError: the entry does not work with a plan.
    """
    options = check_entry(settings)
    provider = provider_of(settings)
    stored = None if folder is None else StoredLogin(folder)
    access = ChatGPTAccess(
        settings.name, provider, SignInServer(settings, provider), stored, on_key=on_key, clock=clock
    )
    login = ChatGPTLogin(settings, provider, stored, on_key=on_key, clock=clock)
    return ChatGPTAdapter(settings, PlanResponses(settings, read_blob, options), access, login)


def _is_final(error: AdapterError) -> bool:
    """Return whether the error means that the plan does not allow the request, so that it is not sent again."""
    return trouble_of(error) not in (None, "not known")
