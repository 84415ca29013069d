"""AWS Signature Version 4 as a server checks it, from the description in AWS's documentation.

It shares no code with botocore, which signs on the other side, so neither repeats the other's mistakes.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request,"
    r" SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)
_MAX_AGE = timedelta(minutes=5)


def why_refused(
    *,
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    body: bytes,
    secrets: Mapping[str, str],
    region: str,
    service: str,
    now: datetime | None = None,
) -> str:
    """Return why a request is refused, or "" if its signature is right. `secrets` are secret keys by key id."""
    found = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    if found is None:
        return "Missing Authentication Token"
    key_id, day, scope_region, scope_service, names, signature = found.groups()
    if key_id not in secrets:
        return "The security token included in the request is invalid."
    if (scope_region, scope_service) != (region, service):
        return f"Credential should be scoped to {region}/{service}, not {scope_region}/{scope_service}."
    moment = headers.get("x-amz-date", "")
    signed_at = datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    if abs((now or datetime.now(UTC)) - signed_at) > _MAX_AGE or not moment.startswith(day):
        return f"Signature expired: {moment}"
    signed = names.split(";")
    needed = {"host", "x-amz-date"} | {name for name in headers if name.startswith("x-amz-")}
    if not needed <= set(signed):
        return f"These headers must be signed: {', '.join(sorted(needed - set(signed)))}"
    pairs = sorted((quote(k, safe="-_.~"), quote(v, safe="-_.~")) for k, v in parse_qsl(query, keep_blank_values=True))
    canonical = "\n".join(
        [
            method,
            quote(path, safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{' '.join(headers.get(name, '').split())}" for name in signed),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        ]
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{secrets[key_id]}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    if not hmac.compare_digest(hmac.digest(key, text.encode(), "sha256").hex(), signature):
        return "The request signature we calculated does not match the signature you provided."
    return ""
