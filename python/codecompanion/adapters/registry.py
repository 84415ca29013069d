"""Creates the configured adapters by name, each once, on first use."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from codecompanion.adapters.base import Adapter, AdapterSettings, BlobReader
from codecompanion.adapters.clouds import require_transport
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.keys.key_source import FROM_FUNCTION, KeyReader, key_variable
from codecompanion.adapters.keys.redact import secrets_in_url
from codecompanion.adapters.keys.stored_tokens import tokens_in
from codecompanion.adapters.own_options import options_of, refuse_reserved
from codecompanion.adapters.transport.time_limits import is_loopback
from codecompanion.adapters.wire_format import WireFormat
from codecompanion.errors import ConfigError, InputError, MissingKey, NetworkFailed, NotConfigured, ServerLoading
from codecompanion.formats import typed
from codecompanion.formats.regex import regex
from codecompanion.model.messages import Message

if TYPE_CHECKING:
    from codecompanion.adapters.login_adapter import LoginAdapter

Summarise: TypeAlias = Callable[[Sequence[Message], int], str]
"""A function that takes messages and a maximum number of tokens and returns a summary, written without a model."""
OFFLINE_WINDOW = 128_000
"""Default context window of the offline adapter, in tokens."""


def read_settings(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, AdapterSettings]:
    """Return the settings of `adapters.http`, from the editor's message (inheritance resolved).

    Raises:
        ConfigError: an entry has a wrong type; the message names the key path.
    """
    found: dict[str, AdapterSettings] = {}
    for name, table in tables.items():
        try:
            settings = typed.convert({**table, "name": name}, AdapterSettings)
        except msgspec.ValidationError as error:
            problem, _, place = str(error).partition(" - at ")
            raise ConfigError(f"adapters.http.{name}{place.strip('`$')}", problem) from None
        if settings.kind == "offline" and not settings.context_window:
            settings = msgspec.structs.replace(settings, context_window=OFFLINE_WINDOW)
        found[name] = settings
    return found


_VARIABLE = regex(r"(?<![A-Z0-9_])[A-Z][A-Z0-9]*+_[A-Z0-9_]++(?=/|$)")
"""Matches a URL that begins with the name of an unset environment variable (names of set variables are replaced)."""
_HOLDS_KEY = regex(r"key|token|secret|auth|cookie|pass", re.IGNORECASE)


class AdapterRegistry:
    """Creates adapters and caches them.

    `secrets` contains the keys that functions in the configuration returned, by adapter name. `logins` is the folder of
    the plugin's own logins, or None.
    """

    def __init__(
        self,
        settings: Mapping[str, AdapterSettings],
        *,
        read_blob: BlobReader,
        summarise: Summarise,
        secrets: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        on_key: Callable[[str], None] = lambda key: None,
        logins: Path | None = None,
    ) -> None:
        self._settings = dict(settings)
        self._environ = os.environ if environ is None else environ
        self._on_key, self._logins = on_key, logins
        self._read_blob = read_blob
        self._summarise = summarise
        self._keys = KeyReader(secrets, environ=environ, on_key=on_key)
        self._made: dict[str, Adapter] = {}
        self._problems: dict[str, ConfigError] = {}
        self.on_facts: Callable[[str], None] = lambda name: None
        """Callback that receives an adapter's name when its server reports something new about itself."""
        self._with_login: dict[str, LoginAdapter] = {}

    def names(self) -> list[str]:
        """Return the names of all adapters, sorted."""
        return sorted(self._settings)

    def key_variables(self) -> frozenset[str]:
        """Return the environment variables from which keys are read."""
        return frozenset(filter(None, map(key_variable, self._settings.values())))

    def sent_values(self) -> frozenset[str]:
        """Return the values of all headers, and the secret parts of URLs."""
        entries = self._settings.values()
        headers = (value for entry in entries for value in entry.headers.values())
        return frozenset((*headers, *(value for entry in entries for value in secrets_in_url(entry.base_url))))

    def secret_values(self) -> list[str]:
        """Return the keys in headers, URLs and logins; keys in files are passed to `on_key` (blocks)."""
        self._keys.look_in_files(self._settings.values())
        found = [] if self._logins is None else tokens_in(self._logins)
        found += [value for entry in self._settings.values() for value in secrets_in_url(entry.base_url)]
        for entry in self._settings.values():
            found += [value.split()[-1] for name, value in entry.headers.items() if _HOLDS_KEY.search(name) and value]
        return found

    def settings(self, name: str) -> AdapterSettings:
        """Return the settings of an adapter; a recognised server counts as a local server.

        Raises:
            ConfigError: the name is unknown; the message suggests the nearest name.
        """
        found = self._settings.get(name)
        if found is None:
            near = get_close_matches(name, self._settings, n=1, cutoff=0.5)
            others = f"did you mean {near[0]!r}?" if near else f"the adapters are {', '.join(self.names())}"
            raise ConfigError(f"adapters.http.{name}", f"there is no adapter {name!r}; {others}")
        made = self._made.get(name)
        return made.settings if isinstance(made, HttpAdapter) and made.settings.local_server else found

    def get(self, name: str) -> Adapter:
        """Return the adapter; nothing is imported or opened before its first request or `warm_up`.

        If its entry is unusable, the adapter refuses every request with the reason, so that a chat can still open.

        Raises:
            ConfigError: the name is unknown.
        """
        if name not in self._made:
            settings = self.settings(name)
            try:
                self._made[name] = self._make(settings)
            except ConfigError as error:
                from codecompanion.adapters.misconfigured_adapter import UnusableAdapter  # not needed at startup

                self._made[name] = UnusableAdapter(settings, error)
                self._problems[name] = error
        return self._made[name]

    def is_made(self, name: str) -> bool:
        """Return whether an adapter has been created; otherwise it has no facts about its server."""
        return name in self._made

    def read_key(self, settings: AdapterSettings) -> str:
        """Return the key of a connection that is not an adapter (blocks); raises `MissingKey`."""
        return self._keys(settings)

    def check(self, name: str) -> None:
        """Raise `ConfigError` if the name is unknown, or its entry cannot be used."""
        self.get(name)
        if name in self._problems:
            raise self._problems[name]

    def add(self, adapter: Adapter, settings: AdapterSettings) -> None:
        """Add an adapter created elsewhere (for the demo, a recorded transcript), replacing any with the same name."""
        self._settings[adapter.name] = settings
        self._made[adapter.name] = adapter
        self._problems.pop(adapter.name, None)

    def give_secrets(self, secrets: Mapping[str, str]) -> None:
        """Add keys that functions in the configuration returned; they apply from the next request on."""
        self._keys.give(secrets)
        for name in secrets:
            adapter = self._made.get(name)
            if isinstance(adapter, HttpAdapter):
                adapter.forget_key()

    def with_login(self, name: str) -> LoginAdapter:
        """Return an adapter that uses a login instead of a key.

        Raises:
            ConfigError: the name is unknown, or the adapter's entry cannot be used.
            InputError: the adapter uses a key, or needs none.
        """
        self.check(name)
        if name not in self._with_login:
            raise InputError(f"{name} has no login. Its key comes from its configuration; see ga.")
        return self._with_login[name]

    def forget_login(self, name: str) -> None:
        """Forget an adapter's cached login, so that it is read again before the next request."""
        if name in self._with_login:
            self._with_login[name].forget_login()

    def forget_keys(self, variables: Collection[str]) -> None:
        """Forget the cached keys from these environment variables; they are read again before the next request."""
        for name, adapter in self._made.items():
            if isinstance(adapter, HttpAdapter) and key_variable(self._settings[name]) in variables:
                adapter.forget_key()

    async def aclose(self) -> None:
        """Close every adapter's connections."""
        made, self._made = list(self._made.values()), {}
        await asyncio.gather(*(adapter.aclose() for adapter in made))

    def _make(self, settings: AdapterSettings) -> Adapter:
        path = f"adapters.http.{settings.name}"
        if settings.kind == "offline":
            from codecompanion.adapters.offline.adapter import OfflineAdapter, OfflineOptions  # not needed at startup

            offline = options_of(settings, OfflineOptions)
            return OfflineAdapter(settings, options=offline, summarise=self._summarise)
        require_transport(settings)
        unset = _VARIABLE.match(settings.base_url)
        if unset:
            raise ConfigError(f"{path}.{settings.address_key}", f"{unset[0]} is not set")
        if not _is_address(settings.base_url):
            got = f"got {json.dumps(settings.base_url, ensure_ascii=False)}"
            raise ConfigError(f"{path}.{settings.address_key}", got, "http://… or https://…")
        if settings.proxy and not settings.proxy.startswith(("http://", "https://")):
            got = f"got {json.dumps(settings.proxy, ensure_ascii=False)}"
            raise ConfigError("adapters.http.opts.proxy", got, "http://… or https://…")
        if settings.kind in ("copilot", "chatgpt"):
            adapter = self._with_login[settings.name] = self._make_with_login(settings)
            return adapter
        wire = make_wire(settings, self._read_blob)
        return HttpAdapter(
            settings,
            wire,
            read_key=self._keys,
            environ=self._environ,
            on_secret=self._on_key,
            on_facts=lambda: self.on_facts(settings.name),
        )

    def _make_with_login(self, settings: AdapterSettings) -> LoginAdapter:
        if settings.kind == "chatgpt":
            from codecompanion.adapters.chatgpt.adapter import make_chatgpt

            return make_chatgpt(settings, self._read_blob, self._logins, on_key=self._on_key)
        from codecompanion.adapters.copilot.adapter import make_copilot

        return make_copilot(settings, self._read_blob, self._logins, environ=self._environ, on_key=self._on_key)


def _is_address(url: str) -> bool:
    """Return whether a URL has a host and a valid port."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an incomplete IPv6 address, a port of 99999
        return False


def is_out_of_reach(settings: AdapterSettings, error: BaseException) -> bool:
    """Return whether an entry is currently unusable: an invalid option, no key, no server on this machine.

    Such an entry offers no models; it is listed with the reason, so that the user can set the key or start the server.
    """
    if isinstance(error, MissingKey):
        return settings.key != FROM_FUNCTION
    if isinstance(error, NotConfigured | ConfigError):
        return True
    return isinstance(error, ServerLoading) or (isinstance(error, NetworkFailed) and is_loopback(settings.base_url))


def make_wire(settings: AdapterSettings, read_blob: BlobReader) -> WireFormat:
    """Return the wire format of an entry. Most hosts use only one format, so each is imported when needed.

    Raises:
        ConfigError: an option or parameter of the entry is invalid.
    """
    match settings.kind:
        case "openai" | "openai_compatible":
            from codecompanion.adapters.openai_chat.render import RESERVED, RenderOptions
            from codecompanion.adapters.openai_chat.wire import OpenAIChat

            options = options_of(settings, RenderOptions)
            refuse_reserved(settings, RESERVED)
            return OpenAIChat(settings, read_blob, options)
        case "openai_responses":
            from codecompanion.adapters.openai_responses.options import RESERVED as RESERVED_BY_RESPONSES
            from codecompanion.adapters.openai_responses.options import ResponsesOptions
            from codecompanion.adapters.openai_responses.wire import OpenAIResponses

            refuse_reserved(settings, RESERVED_BY_RESPONSES)
            return OpenAIResponses(settings, read_blob, options_of(settings, ResponsesOptions))
        case "anthropic":
            from codecompanion.adapters.anthropic_messages.options import RESERVED as RESERVED_BY_MESSAGES
            from codecompanion.adapters.anthropic_messages.options import MessagesOptions
            from codecompanion.adapters.anthropic_messages.wire import AnthropicMessages

            refuse_reserved(settings, RESERVED_BY_MESSAGES)
            return AnthropicMessages(settings, read_blob, options_of(settings, MessagesOptions))
        case kind:
            raise ConfigError(
                f"adapters.http.{settings.name}.kind", f"{kind!r} has no wire format", "openai or openai_compatible"
            )
