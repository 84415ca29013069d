"""Identifies the issuer of logins and tokens, and this program to the issuer."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.transport.time_limits import is_loopback
from codecompanion.errors import ConfigError

ISSUER = "https://auth.openai.com"
RESOURCE = "https://api.openai.com/v1"
"""The resource that tokens are issued for: it is sent in token requests, and is the only URL that receives tokens."""
PLAN_SCOPE = "chatgpt.tokens.use.direct"
"""The permission to use the plan. Only the token response shows whether the user granted it."""
SCOPES = f"openid profile email offline_access resource.invoke {PLAN_SCOPE}"
NEW_CLIENT = "dynamic_agent_client"
"""The client id that requests a new registration for this user and workspace; the page returns the id to store."""
APP_NAME = "CodeCompanion for Neovim"
"""The `agent_name_hint`, identical in every installation."""
CALLBACK_PATH = "/auth/callback"
LOGIN_COMMAND = ":CodeCompanion login chatgpt"
USAGE_PAGE = "https://chatgpt.com/settings/usage"


class Provider(msgspec.Struct, frozen=True):
    """The login provider, identified by its issuer URL without a trailing slash."""

    issuer: str = ISSUER

    def is_own_url(self, address: object) -> bool:
        """Return whether a URL is on the issuer's own host, which is the only one that may receive codes and tokens."""
        if not isinstance(address, str):
            return False
        try:
            asked, own = urlsplit(address), urlsplit(self.issuer)
            same = (asked.scheme, asked.hostname, asked.port) == (own.scheme, own.hostname, own.port)
        except ValueError:
            return False
        return same and not asked.username


def provider_of(settings: AdapterSettings) -> Provider:
    """Return the issuer for an entry: `opts.issuer`, else OpenAI.

    Raises:
        ConfigError: requests would not be encrypted, or OpenAI's tokens would be sent elsewhere.
    """
    path = f"adapters.http.{settings.name}"
    issuer = str(settings.options.get("issuer") or ISSUER).rstrip("/")
    if not issuer.startswith("https://") and not is_loopback(issuer):
        raise ConfigError(f"{path}.opts.issuer", f"got {issuer!r}", "https://…")
    elsewhere = Provider(RESOURCE).is_own_url(settings.base_url) is False and not is_loopback(settings.base_url)
    if issuer == ISSUER and elsewhere:
        told = f"ChatGPT plan tokens may be sent only to {RESOURCE}, not to {settings.base_url}"
        raise ConfigError(f"{path}.{settings.address_key}", told)
    return Provider(issuer)
