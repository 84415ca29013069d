"""GitHub's URLs, and the headers that identify a Copilot client."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from codecompanion import __version__
from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.transport.time_limits import is_loopback

CLIENT_ID = "Iv1.b507a08c87ecfe98"
"""The public id of GitHub's own application for Copilot in editors; tokens of other applications do not work with
Copilot.
"""
SCOPE = "read:user"
LOGIN_COMMAND = ":CodeCompanion login copilot"
SETTINGS_PAGE = "https://github.com/settings/copilot"
HEADERS = {
    # Copilot answers 4xx unless it knows the program's id; other Neovim plugins send this one.
    "copilot-integration-id": "vscode-chat",
    "editor-version": "Neovim/0.10.0",
    "editor-plugin-version": f"codecompanion/{__version__}",
    "x-github-api-version": "2025-10-01",
}


class GitHub(msgspec.Struct, frozen=True):
    """The URLs of a GitHub instance: `web` for logins, `api` for token exchange, without trailing slashes."""

    web: str = "https://github.com"
    api: str = "https://api.github.com"

    @property
    def host(self) -> str:
        """Return the host name as it appears in stored logins."""
        return "github.com" if is_loopback(self.web) else (urlsplit(self.web).hostname or "")

    def is_trusted(self, address: str) -> bool:
        """Return whether the token may be sent to a URL from a reply: it uses HTTPS, or both hosts are this machine."""
        return address.startswith("https://") or (is_loopback(self.web) and is_loopback(address))


def github_of(settings: AdapterSettings) -> GitHub:
    """Return the GitHub instance of an entry: `opts.github` (a company's `https://company.ghe.com`) or github.com."""
    web = str(settings.options.get("github") or "").rstrip("/")
    if not web:
        return GitHub()
    parts = urlsplit(web)
    return GitHub(web, web if is_loopback(web) else f"{parts.scheme}://api.{parts.netloc}")
