"""Cloud providers whose models are called through an official client: required options of an entry, and defaults.

Option names are those of the clients' own arguments and environment variables (anthropic 2.11, openai 3.52).
"""

from __future__ import annotations

from collections.abc import Mapping

from codecompanion.adapters.base import AdapterSettings, CloudClient
from codecompanion.errors import ConfigError

WHOSE: dict[str, str] = {
    "bedrock": "AWS",
    "bedrock_mantle": "AWS",
    "vertex": "Google Cloud",
    "azure": "Entra ID",
}
TAKES_FIELDS = {"bedrock": "bedrock-2023-05-31", "vertex": "vertex-2023-10-16"}
"""Cloud → API version, for clouds whose clients build path and body from the fields of a Messages body. Both clouds
document the version for all their models; older models refuse the client's default, which is for Anthropic's own API.
"""
BEDROCK_OF_PROFILE = "https://bedrock-runtime.amazonaws.com"
"""Placeholder URL for Bedrock in the region of the user's AWS profile, which only AWS's own library reads."""
_KINDS = ("openai", "openai_compatible", "openai_responses", "anthropic")
_CLIENTS_OF: dict[str, tuple[CloudClient, ...]] = {
    "anthropic": ("bedrock", "bedrock_mantle", "vertex", "azure"),
    **dict.fromkeys(("openai", "openai_compatible", "openai_responses"), ("azure",)),
}
_ADDRESS_VARIABLE = {
    "bedrock": "ANTHROPIC_BEDROCK_BASE_URL",
    "bedrock_mantle": "ANTHROPIC_BEDROCK_MANTLE_BASE_URL",
    "vertex": "ANTHROPIC_VERTEX_BASE_URL",
}
_REGION_VARIABLES = {
    "bedrock": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "bedrock_mantle": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "vertex": ("CLOUD_ML_REGION",),
}
_PROJECT_VARIABLES = ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")
_VERTEX_AREAS = {"global": "aiplatform", "us": "aiplatform.us.rep", "eu": "aiplatform.eu.rep"}


def credentials_of(client: str) -> str:
    """Return the phrase that names a cloud's credentials in messages, or "" without a cloud."""
    return f"the credentials of {WHOSE[client]}" if client else ""


def region_of(client: str, environ: Mapping[str, str]) -> str:
    """Return the cloud's region from the environment, or "" if it is not set."""
    return next((environ[name] for name in _REGION_VARIABLES.get(client, ()) if environ.get(name)), "")


def project_of(environ: Mapping[str, str]) -> str:
    """Return the Google Cloud project from the environment, or "" if it is not set."""
    return next((environ[name] for name in _PROJECT_VARIABLES if environ.get(name)), "")


def address_of(client: str, region: str, environ: Mapping[str, str]) -> str:
    """Return a cloud's base URL in a region, or "" if it is unknown."""
    given = environ.get(_ADDRESS_VARIABLE.get(client, ""), "")
    if given:
        return given.rstrip("/")
    if client == "bedrock":
        return f"https://bedrock-runtime.{region}.amazonaws.com" if region else BEDROCK_OF_PROFILE
    if client == "bedrock_mantle" and region:
        return f"https://bedrock-mantle.{region}.api.aws/anthropic"
    if client == "vertex" and region:
        return f"https://{_VERTEX_AREAS.get(region, f'{region}-aiplatform')}.googleapis.com/v1"
    return ""


def require_transport(settings: AdapterSettings) -> None:
    """Check an entry's transport options.

    Raises:
        ConfigError: an option is missing or does not apply to this transport; the message contains its key path.
    """
    path = f"adapters.http.{settings.name}.opts"
    client, is_sdk = settings.client, settings.transport == "sdk"
    if is_sdk and settings.kind not in _KINDS:
        raise ConfigError(f"{path}.transport", f"an adapter of kind {settings.kind} has no official client")
    if client and not is_sdk:
        raise ConfigError(f"{path}.client", f'"{client}" needs transport = "sdk"')
    if client and client not in _CLIENTS_OF[settings.kind]:
        known = " or ".join(f'"{name}"' for name in _CLIENTS_OF[settings.kind])
        raise ConfigError(f"{path}.client", f'"{client}" has no effect on an adapter of kind {settings.kind}', known)
    clients_of: dict[str, tuple[CloudClient, ...]] = {
        "region": ("bedrock", "bedrock_mantle", "vertex"),
        "project_id": ("vertex",),
        "aws_profile": ("bedrock", "bedrock_mantle"),
    }
    for name, clients in clients_of.items():
        if getattr(settings, name) and client not in clients:
            needed = " or ".join(f'client = "{one}"' for one in clients)
            raise ConfigError(f"{path}.{name}", f"needs {needed}")
    if client and settings.key:
        said = f"the client provides {credentials_of(client)}"
        raise ConfigError(f"adapters.http.{settings.name}.env.api_key", said, "no key")
    if client in ("bedrock_mantle", "vertex") and not settings.region:
        variable = _REGION_VARIABLES[client][0]
        raise ConfigError(f"{path}.region", "is not set", f"a region here or in {variable}")
    if client == "vertex" and not settings.project_id:
        raise ConfigError(f"{path}.project_id", "is not set", f"a project here or in {_PROJECT_VARIABLES[0]}")
