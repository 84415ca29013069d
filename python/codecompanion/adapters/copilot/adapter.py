"""The Copilot adapter: gets a valid token before each request, and uses the endpoint that serves the model."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from codecompanion import errors
from codecompanion.adapters.base import AdapterSettings, BlobReader, ChatRequest
from codecompanion.adapters.copilot.access import CopilotAccess, CopilotToken
from codecompanion.adapters.copilot.copilot_formats import CopilotChat, CopilotMessages, CopilotResponses
from codecompanion.adapters.copilot.github import HEADERS, LOGIN_COMMAND, SETTINGS_PAGE, github_of
from codecompanion.adapters.copilot.login import CopilotLogin
from codecompanion.adapters.copilot.offers import Offer, Offers, Served
from codecompanion.adapters.copilot.stored_login import LOGIN_FILE, Places
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.login_adapter import LoginAdapter
from codecompanion.adapters.wire_format import WireFormat, origin_of
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import AdapterError
from codecompanion.formats.regex import regex

_USED_UP = regex(r"quota|allowance|premium (?:request|interaction)|monthly limit", re.IGNORECASE)


class CopilotAdapter(LoginAdapter):
    """GitHub Copilot. The connection for each wire format is created on first use."""

    def __init__(
        self,
        settings: AdapterSettings,
        read_blob: BlobReader,
        places: Places,
        *,
        on_key: Callable[[str], None] = lambda key: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(settings, clock=clock)
        self.origin = origin_of(CopilotChat.origin_name, settings.base_url)
        self._read_blob = read_blob
        github = github_of(settings)
        self._access = CopilotAccess(settings, github, places, on_key=on_key, clock=clock)
        self._login = CopilotLogin(settings, github, places.own)
        self._offers = Offers()
        self._inner: dict[tuple[Served, str], HttpAdapter] = {}
        self._token = CopilotToken("", settings.base_url, 0.0)

    def login(self) -> CopilotLogin:
        """Return the GitHub login."""
        return self._login

    def limits(self, model: str) -> ModelLimits | None:
        """Return the model's limits from the model list, or None if not read yet; "" means Copilot's default model."""
        offer = self._offers.by_name.get(model or self._offers.default())
        return offer.limits if offer is not None and offer.limits.context_window else None

    def forget_login(self) -> None:
        """Read the login and the account's models again before the next request."""
        self._access.forget(self._token.token)
        super().forget_login()

    async def aclose(self) -> None:
        """Close the connections."""
        inner, self._inner = list(self._inner.values()), {}
        await asyncio.gather(self._access.aclose(), *(adapter.aclose() for adapter in inner))

    async def _renew(self) -> str:
        self._token = token = await self._access.token()
        for adapter in self._inner.values():
            adapter.use_key(token.token)
        return token.token

    def _refused(self, token: str) -> None:
        self._access.forget(token)

    async def _list(self) -> list[str]:
        return await self._connection("chat").list_models()

    def _wanted(self, request: ChatRequest) -> ChatRequest:
        """Return the request with its model filled in.

        Raises:
            AdapterError: no model is available, or the model's terms are not accepted.
        """
        if not self.default_model:
            self.default_model = self._offers.default()
        model = request.model or self.default_model
        if not model:
            raise errors.ModelNotFound(
                f"{self.name}: no model is configured and Copilot lists none. Choose one with ga."
            )
        offer = self._offers.by_name.get(model, Offer(model))
        if not offer.is_enabled:
            raise errors.RequestRejected(
                f"{self.name}: {model} is not enabled for this account: its terms were not accepted. "
                f"Enable it at {SETTINGS_PAGE}, or choose another model with ga."
            )
        if request.tools and not offer.has_tools:
            request = msgspec.structs.replace(request, tools=())
        return msgspec.structs.replace(request, model=model)

    def _serving(self, model: str) -> HttpAdapter:
        return self._connection(self._offers.by_name.get(model, Offer(model)).served)

    def _connection(self, served: Served) -> HttpAdapter:
        address = self._token.api
        found = self._inner.get((served, address))
        if found is None:
            entry, wire = self._entry(served, address)
            found = HttpAdapter(entry, wire, read_key=lambda _: self._token.token, is_final=is_used_up)
            found.use_key(self._token.token)
            self._inner[served, address] = found
        return found

    def _entry(self, served: Served, address: str) -> tuple[AdapterSettings, WireFormat]:
        """Return the settings and the wire format of a connection."""
        own = self._settings
        images = own.options.get("image_input") is not False
        change = msgspec.structs.replace(
            own, base_url=address, key="the Copilot token", headers={**HEADERS, **own.headers}, options={}
        )
        match served:
            case "responses":
                entry = msgspec.structs.replace(change, kind="openai_responses", chat_path="", models_path="")
                return entry, CopilotResponses(entry, self._read_blob, images=images)
            case "messages":
                entry = msgspec.structs.replace(change, kind="anthropic", chat_path="", models_path="")
                return entry, CopilotMessages(entry, self._read_blob, images=images)
            case "chat":
                entry = msgspec.structs.replace(change, kind="openai_compatible")
                return entry, CopilotChat(entry, self._read_blob, self._offers, images=images)

    def _explained(self, error: AdapterError) -> AdapterError:
        """Return the error with a message that fits Copilot."""
        if is_used_up(error):
            told = f"{self.name}: Copilot's allowance is used up ({error.status}). Choose another model or adapter "
            explained: AdapterError = errors.RateLimited(f"{told}with ga, or see {SETTINGS_PAGE}.")
            explained.retryable = False
        elif error.status == 401:
            told = f"{self.name}: Copilot refused the token that GitHub has just issued (401)."
            explained = errors.AuthenticationFailed(f"{told} Log in again with {LOGIN_COMMAND}.")
        elif error.status == 403 and isinstance(error, errors.AuthenticationFailed):
            told = str(error).replace("Check the key and the account.", f"See {SETTINGS_PAGE}.")
            explained = errors.AuthenticationFailed(told)
        else:
            return error
        explained.status, explained.code = error.status, error.code
        return explained


def make_copilot(
    settings: AdapterSettings,
    read_blob: BlobReader,
    folder: Path | None,
    *,
    environ: Mapping[str, str],
    on_key: Callable[[str], None],
) -> CopilotAdapter:
    """Return the adapter for an entry; the plugin's own login is in `folder`."""
    own = None if folder is None else folder / LOGIN_FILE
    return CopilotAdapter(settings, read_blob, Places(environ, own, github_of(settings).host), on_key=on_key)


def is_used_up(error: AdapterError) -> bool:
    """Return whether the error means that the monthly request quota is used up."""
    return error.status in (402, 429) and _USED_UP.search(f"{error.code} {error}") is not None
