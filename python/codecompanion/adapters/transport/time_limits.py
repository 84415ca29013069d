"""Time limits for a silent endpoint (lesson 18).

Silence may mean work: a local server reads a long prompt for many minutes, or a model reasons without output. A server
on this machine therefore has no limit (the status line shows the elapsed time, and a key cancels), a server on a
private network half an hour, and any other ten minutes plus more for a long prompt. Keep-alives show that the server is
alive, not that a reply will come: they extend the wait to an hour. A reply that makes progress has no limit. A
configured limit applies unchanged to every endpoint.
"""

from __future__ import annotations

import ipaddress
from typing import Literal
from urllib.parse import urlsplit

from codecompanion.adapters.base import AdapterSettings
from codecompanion.formats.byte_limits import KEEP_ALIVE_S

Place = Literal["loopback", "private", "public"]
ANSWER_LIMIT_S = 30.0
"""Time limit in seconds for requests without a long wait: a list of models, a token count."""
PRIVATE_SILENCE_S = 1_800.0
PUBLIC_SILENCE_S = 600.0
BYTES_READ_IN_A_SECOND = 10_000
"""Reading speed of a slow provider, in bytes per second: a prompt of 4 MB adds seven minutes to the limit."""


def max_silence_s(settings: AdapterSettings, body_bytes: int) -> float | None:
    """Return the maximum seconds of silence after a request of this size, or None for no limit."""
    if settings.idle_timeout_s:
        return settings.idle_timeout_s
    match place_of(settings.base_url):
        case "loopback":
            return None
        case "private":
            return PRIVATE_SILENCE_S
        case "public":
            return PUBLIC_SILENCE_S + body_bytes // BYTES_READ_IN_A_SECOND


def max_keep_alive_s(settings: AdapterSettings) -> float | None:
    """Return the maximum seconds of keep-alives without new output, or None for no limit."""
    if settings.idle_timeout_s:
        return settings.idle_timeout_s
    return None if is_loopback(settings.base_url) else KEEP_ALIVE_S


def is_loopback(address: str) -> bool:
    """Return whether the URL is on this machine."""
    return place_of(address) == "loopback"


def is_own_server(settings: AdapterSettings) -> bool:
    """Return whether an entry is for a server that runs models on the user's machine or network."""
    return settings.local_server and place_of(settings.base_url) != "public"


def names_no_server(settings: AdapterSettings) -> bool:
    """Return whether an entry is for a server on the user's machine or network but does not name the server software.

    The context windows can then only be in the list of models.
    """
    says_where = settings.limits_path not in ("", settings.models_path)
    is_named = settings.kind != "openai_compatible" or settings.local_server or says_where
    return not is_named and place_of(settings.base_url) != "public"


def place_of(address: str) -> Place:
    """Return the location of a URL's host; an invalid URL counts as public."""
    try:
        host = (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:
        return "public"
    if host == "localhost" or host.endswith(".localhost"):
        return "loopback"
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        local_name = "." not in host or host.endswith((".local", ".lan", ".internal", ".home.arpa"))
        return "private" if host and local_name else "public"
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if ip.is_loopback or ip.is_unspecified:
        return "loopback"
    return "private" if ip.is_private or ip.is_link_local else "public"
