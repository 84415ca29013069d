"""Sets an adapter's URL and paths from `url`, or from `env.url` and separate paths, as in codecompanion.nvim."""

from __future__ import annotations

import re

from codecompanion.adapters.clouds import TAKES_FIELDS
from codecompanion.adapters.entries.draft import Draft
from codecompanion.adapters.entries.lua_values import shown
from codecompanion.formats.regex import regex

# The path of the chat endpoint, by kind of adapter.
_ENDS = {
    "openai": ("/chat/completions",),
    "openai_compatible": ("/chat/completions",),
    "openai_responses": ("/responses",),
    "chatgpt": ("/responses",),
    "anthropic": ("/v1/messages", "/messages"),
}
# Paths that may be set separately.
_PATHS = {"chat_url": "chat_path", "models_endpoint": "models_path", "limits_endpoint": "limits_path"}
_VERSION = regex(r"/v\d+[a-zA-Z0-9]*/", re.ASCII)
_ADDRESS = regex(r"https?://[^/]")
_ORIGIN = regex(r"(\w+://[^/]+)(.*)", re.ASCII | re.DOTALL)
_PORT = regex(r":\d+$", re.ASCII)
_DEFAULT_PORT = 11434


def ollama_address(host: str) -> str:
    """Return Ollama's URL from OLLAMA_HOST, parsed as its command line does, with 0.0.0.0 replaced by 127.0.0.1."""
    host = host.rstrip("/")
    if not host.startswith(("http://", "https://")):
        host = f"http://{host if _PORT.search(host) else f'{host}:{_DEFAULT_PORT}'}"
    return host.replace("//0.0.0.0", "//127.0.0.1")


def set_address(draft: Draft) -> None:
    """Set the URL and the paths; an invalid URL is recorded, and refused when the adapter is used.

    A key is never sent to a URL other than the intended one.
    """
    entry, settings = draft.entry, draft.settings
    written, key = str(settings["base_url"]), "url"
    if entry.url is not None and entry.url != "${url}${chat_url}":
        written = draft.interpolate(entry.url, "url")
        _set_whole(draft, written)
    if "url" in draft.env:
        written, key = draft.env["url"], "env.url"
        settings["address_key"] = key
        _set_base(draft, written.rstrip("/"))
    if settings["client"] in TAKES_FIELDS:
        settings["base_url"] = written.rstrip("/")  # the client makes the paths
    for name, setting in _PATHS.items():
        settings[setting] = draft.env.get(name, settings[setting])
    if draft.kind != "offline" and not _ADDRESS.match(settings["base_url"]):
        settings["base_url"] = written
        draft.problem(key, f"got {shown(written)}; expected http://… or https://…")


def _set_whole(draft: Draft, url: str) -> None:
    """Split the full chat URL into base URL and path; its query is added to each path."""
    settings = draft.settings
    address, mark, query = url.partition("?")
    address = re.sub("([^:])//+", r"\1/", address).rstrip("/")
    ending = next((ending for ending in _ENDS.get(draft.kind, ()) if address.endswith(ending)), "")
    base = address.removesuffix(ending)
    if not ending:
        origin = _ORIGIN.match(address)
        settings["base_url"] = origin[1] if origin else ""
        settings["chat_path"] = origin[2] + mark + query if origin else settings["chat_path"]
        return
    if ending == "/chat/completions" and not _is_versioned(base):
        settings["base_url"], settings["chat_path"] = base, ending
    else:
        _set_base(draft, base)
    settings["base_url"] += mark + query


def _set_base(draft: Draft, base: str) -> None:
    """Set the base URL, without a trailing slash."""
    settings = draft.settings
    if draft.kind == "anthropic":
        settings["base_url"] = base.removesuffix("/v1")
    elif draft.kind in ("openai_responses", "chatgpt"):
        settings["base_url"] = base if _is_versioned(base) else f"{base}/v1"
    elif settings["chat_path"].startswith("/v1/") and (base.endswith("/v1") or not _is_versioned(base)):
        # A server whose other paths do not include the version.
        settings["base_url"] = base.removesuffix("/v1")
    else:
        # codecompanion.nvim's base URL has no version; one that ends with a version (`…/v1`) is used unchanged.
        version = "" if _is_versioned(base) else "/v1"
        asks_model_list = settings["limits_path"] == settings["models_path"]
        settings["base_url"] = base
        settings["chat_path"] = f"{version}/chat/completions"
        settings["models_path"] = f"{version}/models"
        settings["limits_path"] = settings["models_path"] if asks_model_list else ""


def _is_versioned(base: str) -> bool:
    return _VERSION.search(base.partition("?")[0] + "/") is not None
