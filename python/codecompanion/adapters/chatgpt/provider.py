"""Who gives logins and tokens, and what a program says about itself there."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.transport.time_limits import is_loopback
from codecompanion.errors import ConfigError

ISSUER = "https://auth.openai.com"
RESOURCE = "https://api.openai.com/v1"
"""What the tokens are for: named when they are asked for, and the only address they are sent to."""
PLAN_SCOPE = "chatgpt.tokens.use.direct"
"""The permission to use the plan. Only the answer with the tokens tells whether the user gave it."""
SCOPES = f"openid profile email offline_access resource.invoke {PLAN_SCOPE}"
NEW_CLIENT = "dynamic_agent_client"
"""Asks for a registration of its own for this user and workspace; the page answers with the id that is kept."""
APP_NAME = "CodeCompanion for Neovim"
"""`agent_name_hint`: the same at every installation."""
CALLBACK_PATH = "/auth/callback"
LOGIN_COMMAND = ":CodeCompanion login chatgpt"
USAGE_PAGE = "https://chatgpt.com/settings/usage"


class Provider(msgspec.Struct, frozen=True):
    """Where one logs in: an address without a slash at its end."""

    issuer: str = ISSUER

    def holds(self, address: object) -> bool:
        """Return whether an address is on the issuer's own host: only there are codes and tokens sent."""
        if not isinstance(address, str):
            return False
        try:
            asked, own = urlsplit(address), urlsplit(self.issuer)
            same = (asked.scheme, asked.hostname, asked.port) == (own.scheme, own.hostname, own.port)
        except ValueError:
            return False
        return same and not asked.username


def provider_of(settings: AdapterSettings) -> Provider:
    """Return who logs in for an entry: `opts.issuer`, else OpenAI.

    Raises:
        ConfigError: what is sent would not be encrypted, or OpenAI's tokens would go to somebody else.
    """
    path = f"adapters.http.{settings.name}"
    issuer = str(settings.options.get("issuer") or ISSUER).rstrip("/")
    if not issuer.startswith("https://") and not is_loopback(issuer):
        raise ConfigError(f"{path}.opts.issuer", f"got {issuer!r}", "https://…")
    elsewhere = Provider(RESOURCE).holds(settings.base_url) is False and not is_loopback(settings.base_url)
    if issuer == ISSUER and elsewhere:
        told = f"a ChatGPT plan's tokens are for {RESOURCE} only, not for {settings.base_url}"
        raise ConfigError(f"{path}.{settings.address_key}", told)
    return Provider(issuer)
