"""Creates the official client of an entry: OpenAI's or Anthropic's own, or their client for a cloud.

A cloud's own library looks for credentials where the cloud's own tools do: an AWS profile, Google's application default
credentials, Entra ID. Only values that exist in the user's environment, but not in the host's, are passed on to the
library. Nothing is stored or logged here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.clouds import BEDROCK_OF_PROFILE, TAKES_FIELDS
from codecompanion.formats.byte_limits import ASIDE_BYTES

if TYPE_CHECKING:
    import httpx2

_NO_KEY = "set-by-the-request"
"""Placeholder for the key that the clients require; the actual key is a header of each request."""
_ENTRA_SCOPES = {
    ".azure.us": "https://cognitiveservices.azure.us/.default",
    ".azure.cn": "https://cognitiveservices.azure.cn/.default",
}
_ENTRA_SCOPE = "https://cognitiveservices.azure.com/.default"
_FOUNDRY_SCOPE = "https://ai.azure.com/.default"
LOGGERS = ("openai", "anthropic", "boto3", "botocore", "urllib3", "google", "azure", "msal")


def client_key(settings: AdapterSettings) -> tuple[str, str]:
    """Return the key of an entry in `CLIENTS`: its wire format and cloud."""
    return "anthropic" if settings.kind == "anthropic" else "openai", settings.client


def _openai(settings: AdapterSettings, http: httpx2.AsyncClient, environ: Mapping[str, str]) -> Any:
    from openai import AsyncOpenAI

    return AsyncOpenAI(api_key=_NO_KEY, base_url=settings.base_url, max_retries=0, http_client=http)


def _anthropic(settings: AdapterSettings, http: httpx2.AsyncClient, environ: Mapping[str, str]) -> Any:
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(
        api_key=_NO_KEY, base_url=settings.base_url, max_retries=0, http_client=http, open_telemetry=False
    )


def _aws_credentials(settings: AdapterSettings, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the AWS credentials in the user's environment, which the host process lacks, or {} if there are none.

    As in AWS's libraries, a profile that the entry names takes precedence over the environment.
    """
    if settings.aws_profile:
        return {"aws_profile": settings.aws_profile}
    if environ.get("AWS_BEARER_TOKEN_BEDROCK"):
        return {"api_key": environ["AWS_BEARER_TOKEN_BEDROCK"]}
    if not (environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY")):
        return {}
    names = {
        "aws_access_key": "AWS_ACCESS_KEY_ID",
        "aws_secret_key": "AWS_SECRET_ACCESS_KEY",
        "aws_session_token": "AWS_SESSION_TOKEN",
    }
    return {argument: environ[name] for argument, name in names.items() if environ.get(name)}


def _with_fields(client: type[Any], version: str) -> type[Any]:
    """Return a subclass that sends rendered bodies, for clients that build path and body from fields.

    Such a client copies and encodes the fields; for a large body, this runs in a thread to keep the event loop free.
    """

    class WithFields(client):  # type: ignore[misc]
        async def _prepare_options(self, options: Any) -> Any:
            if not options.content:
                return await super()._prepare_options(options)
            if len(options.content) <= ASIDE_BYTES:
                return await self._rewritten(options)
            return await asyncio.to_thread(lambda: asyncio.run(self._rewritten(options)))

        async def _rewritten(self, options: Any) -> Any:
            fields = {"anthropic_version": version, **msgspec.json.decode(options.content)}
            prepared = await super()._prepare_options(options.model_copy(update={"json_data": fields, "content": None}))
            return prepared.model_copy(update={"json_data": None, "content": msgspec.json.encode(prepared.json_data)})

    return WithFields


def _bedrock(settings: AdapterSettings, http: httpx2.AsyncClient, environ: Mapping[str, str]) -> Any:
    from anthropic.lib.bedrock import AsyncAnthropicBedrock

    return _with_fields(AsyncAnthropicBedrock, TAKES_FIELDS["bedrock"])(
        aws_region=settings.region or None,
        **_aws_credentials(settings, environ),
        base_url=None if settings.base_url == BEDROCK_OF_PROFILE else settings.base_url,
        max_retries=0,
        http_client=http,
        open_telemetry=False,
    )


def _bedrock_mantle(settings: AdapterSettings, http: httpx2.AsyncClient, environ: Mapping[str, str]) -> Any:
    from anthropic.lib.bedrock import AsyncAnthropicBedrockMantle

    return AsyncAnthropicBedrockMantle(
        aws_region=settings.region,
        **_aws_credentials(settings, environ),
        base_url=settings.base_url,
        max_retries=0,
        http_client=http,
        open_telemetry=False,
    )


def _vertex(settings: AdapterSettings, http: httpx2.AsyncClient, environ: Mapping[str, str]) -> Any:
    from anthropic.lib.vertex import AsyncAnthropicVertex

    return _with_fields(AsyncAnthropicVertex, TAKES_FIELDS["vertex"])(
        region=settings.region,
        project_id=settings.project_id,
        base_url=settings.base_url,
        max_retries=0,
        http_client=http,
        open_telemetry=False,
    )


def _azure(settings: AdapterSettings, http: httpx2.AsyncClient, environ: Mapping[str, str]) -> Any:
    from openai import AsyncOpenAI

    host = urlsplit(settings.base_url).hostname or ""
    scope = next((scope for ending, scope in _ENTRA_SCOPES.items() if host.endswith(ending)), _ENTRA_SCOPE)
    return AsyncOpenAI(
        api_key=_entra_tokens(scope, environ), base_url=settings.base_url, max_retries=0, http_client=http
    )


def _foundry(settings: AdapterSettings, http: httpx2.AsyncClient, environ: Mapping[str, str]) -> Any:
    from anthropic import AsyncAnthropicFoundry

    return AsyncAnthropicFoundry(
        azure_ad_token_provider=_entra_tokens(_FOUNDRY_SCOPE, environ),
        base_url=settings.base_url,
        max_retries=0,
        http_client=http,
        open_telemetry=False,
    )


def _entra_tokens(scope: str, environ: Mapping[str, str]) -> Callable[[], Awaitable[str]]:
    """Return a function that gets an Entra ID token for each request from azure-identity, which caches tokens."""
    from azure.identity import ClientSecretCredential, DefaultAzureCredential, get_bearer_token_provider

    account = [environ.get(name, "") for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")]
    credential = ClientSecretCredential(*account) if all(account) else DefaultAzureCredential()
    token = get_bearer_token_provider(credential, scope)

    async def give() -> str:
        return await asyncio.to_thread(token)

    return give


CLIENTS: dict[tuple[str, str], Callable[[AdapterSettings, httpx2.AsyncClient, Mapping[str, str]], Any]] = {
    ("openai", ""): _openai,
    ("openai", "azure"): _azure,
    ("anthropic", ""): _anthropic,
    ("anthropic", "bedrock"): _bedrock,
    ("anthropic", "bedrock_mantle"): _bedrock_mantle,
    ("anthropic", "vertex"): _vertex,
    ("anthropic", "azure"): _foundry,
}
