"""The sign-in server: discovery, the page, tokens, their refresh and revocation.

From OpenAI's pages and the OAuth RFCs.

It refuses the requests that these documents say are refused: a different resource or redirect URL, a wrong verifier, a
used code or refresh token, an unknown client. A refresh token that is used a second time ends the login (RFC 9700,
4.14.2).
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.providers.loopback.answers import Answer, json_answer, plain
from tests.providers.loopback.server import Received

RESOURCE = "https://api.openai.com/v1"
PLAN = "chatgpt.tokens.use.direct"
SCOPES = f"openid profile email offline_access resource.invoke {PLAN}"
AUTHORIZE, TOKEN, REVOKE = "/api/accounts/authorize", "/api/accounts/oauth/token", "/api/accounts/oauth/revoke"
DISCOVERY = "/.well-known/openid-configuration"


@dataclass
class Grant:
    """The grant represented by a code or a refresh token."""

    client_id: str
    user: str
    scope: str
    nonce: str = ""
    challenge: str = ""
    redirect: str = ""
    family: int = 0


@dataclass
class SignIn:
    """The state of the server; the attributes for tests come first."""

    base: str = ""
    user: str = "ada@example.com"
    consent: str = "allow"
    """The user's choice on the page: allow, deny, or `identity` (sign in without granting use of the plan)."""
    lives_s: int = 3600
    issuer: str = ""
    endpoints_at: str = ""
    """A different host for the endpoints in the discovery document; "" for the server itself."""
    audience_is_list: bool = True
    claims: dict[str, Any] = field(default_factory=dict)
    callback: dict[str, str] = field(default_factory=dict)
    """Additional or replaced parameters of the URL to which the page redirects."""
    token_answer: dict[str, Any] = field(default_factory=dict)
    """Additional fields of the answer with tokens; None removes a field."""
    failures: list[Answer] = field(default_factory=list)
    """Answers that the token endpoint gives first; they do not change its state."""
    clients: dict[str, str] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    codes: dict[str, Grant] = field(default_factory=dict)
    refreshes: dict[str, Grant] = field(default_factory=dict)
    used: dict[str, Grant] = field(default_factory=dict)
    valid: dict[str, Grant] = field(default_factory=dict)
    revoked: list[str] = field(default_factory=list)
    rotations: int = 0
    families: int = 0

    def answer(self, request: Received) -> Answer | None:
        """Return the answer of the sign-in server, or None if the request is not for it."""
        match request.method, request.path:
            case "GET", "/.well-known/openid-configuration":
                return json_answer(self._discovery())
            case "GET", "/api/accounts/authorize":
                return self._authorize(dict(parse_qsl(request.query)))
            case "POST", "/api/accounts/oauth/token":
                return self._token(request)
            case "POST", "/api/accounts/oauth/revoke":
                form = dict(parse_qsl(request.body.decode()))
                self.revoked.append(form["token"])
                self.refreshes.pop(form["token"], None)
                return plain(b"", content_type="text/plain")
        return None

    def account_of(self, grant: Grant) -> str:
        """Return the `sub` of the user who made the grant."""
        return f"user-{hashlib.sha256(grant.user.encode()).hexdigest()[:12]}"

    def expire(self) -> None:
        """Revoke every access token."""
        self.valid.clear()

    def _discovery(self) -> dict[str, Any]:
        at = self.endpoints_at or self.base
        return {
            "issuer": self.issuer or self.base,
            "authorization_endpoint": f"{at}{AUTHORIZE}",
            "token_endpoint": f"{at}{TOKEN}",
            "revocation_endpoint": f"{at}{REVOKE}",
            "jwks_uri": f"{at}/.well-known/jwks.json",
            "code_challenge_methods_supported": ["S256"],
        }

    def _authorize(self, query: Mapping[str, str]) -> Answer:
        redirect = query.get("redirect_uri", "")
        parts = urlsplit(redirect)
        expected = {"response_type": "code", "resource": RESOURCE, "code_challenge_method": "S256", "scope": SCOPES}
        wrong = [name for name, value in expected.items() if query.get(name) != value]
        wrong += [name for name in ("state", "nonce", "code_challenge") if len(query.get(name, "")) < 40]
        wrong += [] if query.get("ext_agent_host_id", "").startswith("urn:uuid:") else ["ext_agent_host_id"]
        if parts.scheme != "http" or parts.hostname != "127.0.0.1" or parts.path != "/auth/callback" or not parts.port:
            wrong.append("redirect_uri")
        client = query.get("client_id", "")
        is_new = client == "dynamic_agent_client"
        if is_new != ("agent_name_hint" in query) or not (is_new or client in self.clients):
            wrong.append("client_id")
        if wrong:
            return plain(f"invalid_request: {', '.join(wrong)}".encode(), status=400, content_type="text/plain")
        self.hosts.append(query["ext_agent_host_id"])
        back: dict[str, str] = {"state": query["state"]}
        if self.consent == "deny":
            back["error"] = "access_denied"
        else:
            if is_new:
                client = f"oaiapp_{len(self.clients) + 1:08d}"
                self.clients[client] = self.user
            scope = SCOPES if self.consent == "allow" else "openid profile email"
            code = f"ac_{len(self.codes):032d}"
            self.codes[code] = Grant(client, self.user, scope, query["nonce"], query["code_challenge"], redirect)
            back |= {"code": code, "client_id": client, "scope": scope.replace(" ", "+")}
        # The page itself is on another site: the user's actions there happen at once.
        location = f"{redirect}?{urlencode({**back, **self.callback})}"
        return plain(b"", status=302, content_type="text/plain", headers={"Location": location})

    def _token(self, request: Received) -> Answer:
        if self.failures:
            return self.failures.pop(0)
        if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            return _refused("invalid_request")
        form = dict(parse_qsl(request.body.decode()))
        if form.get("resource") != RESOURCE:
            return _refused("invalid_target")
        match form.get("grant_type"):
            case "authorization_code":
                return self._exchange(form)
            case "refresh_token":
                return self._refresh(form)
        return _refused("unsupported_grant_type")

    def _exchange(self, form: Mapping[str, str]) -> Answer:
        grant = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        asked = (form.get("client_id"), form.get("redirect_uri"), challenge)
        if grant is None or asked != (grant.client_id, grant.redirect, grant.challenge):
            return _refused("invalid_grant")
        self.families += 1
        grant.family = self.families
        return self._tokens(grant, nonce=grant.nonce)

    def _refresh(self, form: Mapping[str, str]) -> Answer:
        token = form.get("refresh_token", "")
        grant = self.refreshes.pop(token, None)
        if grant is None:
            if token in self.used:
                family = self.used[token].family
                self.refreshes = {name: one for name, one in self.refreshes.items() if one.family != family}
                return _refused("refresh_token_reused", nested=True)
            return _refused("invalid_grant")
        if form.get("client_id") != grant.client_id or "scope" in form:
            self.refreshes[token] = grant
            return _refused("invalid_client", status=401)
        self.used[token] = grant
        return self._tokens(grant)

    def _tokens(self, grant: Grant, nonce: str = "") -> Answer:
        body: dict[str, Any] = {"token_type": "Bearer", "scope": grant.scope, "id_token": self._identity(grant, nonce)}
        if PLAN in grant.scope:
            self.rotations += 1
            access = f"at_{grant.family:04d}_{self.rotations:024d}"
            refresh = f"rt_{grant.family:04d}_{self.rotations:024d}"
            self.valid[access], self.refreshes[refresh] = grant, grant
            body |= {"access_token": access, "refresh_token": refresh, "expires_in": self.lives_s}
            body["earliest_refresh_at"] = int(time.time()) + self.lives_s // 2
        whole = {name: value for name, value in {**body, **self.token_answer}.items() if value is not None}
        return json_answer(whole)

    def _identity(self, grant: Grant, nonce: str) -> str:
        claims: dict[str, Any] = {
            "iss": self.issuer or self.base,
            "aud": [grant.client_id] if self.audience_is_list else grant.client_id,
            "sub": self.account_of(grant),
            "email": grant.user,
            "name": "Ada",
            "iat": int(time.time()),
            "exp": int(time.time()) + 3600,
            **({"nonce": nonce} if nonce else {}),
            **self.claims,
        }
        parts = [json.dumps(part).encode() for part in ({"alg": "RS256", "typ": "JWT"}, claims)]
        return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in (*parts, b"signature"))


def _refused(code: str, status: int = 400, *, nested: bool = False) -> Answer:
    error: Any = {"code": code, "message": "Refused.", "type": "invalid_request_error"} if nested else code
    return json_answer({"error": error}, status=status)
