"""Checks the ID token that arrives with the other tokens, and reads the identity of the logged-in user.

The ID token is part of the token endpoint's response, sent over TLS from the issuer's own host, so TLS validation
replaces the signature check (OpenID Connect Core 1.0, 3.1.3.7, point 6). OpenAI's page asks for the signature check as
well; that would need an RSA library, which this host does not have. Issuer, audience, authorized party, expiry and, for
a login, the nonce are checked.
"""

from __future__ import annotations

import base64
import hmac
from typing import Any

import msgspec

from codecompanion.formats.outside_text import NOT_READABLE

LEEWAY_S = 300.0
"""Allowed difference between this machine's clock and the issuer's, in seconds."""


class Identity(msgspec.Struct, frozen=True):
    """The account of a login: `subject` is its permanent id, `user` its readable name, or "" if unknown."""

    subject: str
    user: str


class NotTrusted(Exception):
    """Raised if the token is not valid for this login; the message completes a sentence, such as "it has expired"."""


def read_identity(token: object, *, issuer: str, client_id: str, now: float, nonce: str = "") -> Identity:
    """Return the identity in the token.

    `now` is in seconds since 1970; `nonce` is "" if none was sent.

    Raises:
        NotTrusted: the token cannot be read, or has another audience or issuer.
    """
    claims = _claims(token)
    if claims.get("iss") != issuer:
        raise NotTrusted("it is from another issuer")
    audience = claims.get("aud")
    if audience not in (client_id, [client_id]) or claims.get("azp", client_id) != client_id:
        raise NotTrusted("it was issued for another client")
    end = claims.get("exp")
    if not isinstance(end, int | float) or isinstance(end, bool) or end + LEEWAY_S < now:
        raise NotTrusted("it has expired; check this machine's clock")
    said = claims.get("nonce")
    if nonce and not (isinstance(said, str) and hmac.compare_digest(said.encode(), nonce.encode())):
        raise NotTrusted("it belongs to another login")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject:
        raise NotTrusted("it does not name an account")
    named = (claims.get("email"), claims.get("name"))
    return Identity(subject, next((one.strip() for one in named if isinstance(one, str) and one.strip()), ""))


def _claims(token: object) -> dict[str, Any]:
    if not isinstance(token, str):
        raise NotTrusted("it is missing")
    parts = token.split(".")
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        claims = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (IndexError, ValueError, *NOT_READABLE):
        raise NotTrusted("it cannot be read") from None
    if len(parts) != 3 or not isinstance(claims, dict):
        raise NotTrusted("it cannot be read")
    return claims
