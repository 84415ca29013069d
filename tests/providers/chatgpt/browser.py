"""A minimal browser for logins: it opens a URL and follows redirects.

From a shell: `python -m tests.providers.chatgpt.browser ADDRESS`.
"""

from __future__ import annotations

import http.client
import sys
from urllib.parse import urlsplit

_LIMIT_S = 20.0


def get(address: str, **headers: str) -> tuple[int, dict[str, str], str]:
    """Return the status, headers (names in lower case) and text of a URL, without following redirects."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_LIMIT_S)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path, headers=headers)
        response = connection.getresponse()
        return response.status, {n.lower(): v for n, v in response.getheaders()}, response.read().decode()
    finally:
        connection.close()


def sign_in(address: str) -> str:
    """Open the sign-in page; return the URL to which it redirects, without opening that."""
    status, headers, text = get(address)
    assert status == 302, f"{status}: {text}"
    return headers["location"]


def come_back(address: str) -> tuple[int, str]:
    """Open the page, sign in and follow the redirect to this machine; return status and text of the final page."""
    status, _, text = get(sign_in(address))
    return status, text


if __name__ == "__main__":
    print(*come_back(sys.argv[1]))
