"""Explains why an official client could not sign a request: no credentials, expired ones, or an unreachable source.

In each case, the request was not sent. The error of the cloud's library is quoted, with a remedy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from codecompanion.adapters.clouds import WHOSE
from codecompanion.adapters.errors.error_body import quote

_LIBRARIES = ("botocore", "boto3", "google", "azure", "msal", "requests", "urllib3")
_OWN_WORDS = ("RuntimeError", "ValueError", "AnthropicError", "OpenAIError")
"""Names of the exceptions that the official clients themselves raise before a request is sent."""
_UNREACHABLE = ("TransportError", "HTTPClientError", "ConnectionError", "ServiceRequestError", "ServiceResponseError")
_REMEDIES = {
    "AWS": "Log in with aws sso login, or set AWS_PROFILE or an AWS access key",
    "Google Cloud": "Run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS",
    "Entra ID": "Run az login, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET",
}


_PLACES = (
    *("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"),
    *("AWS_ROLE_SESSION_NAME", "AWS_EC2_METADATA_DISABLED", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_TOKEN_CREDENTIALS"),
)
"""Variables that say where credentials are but contain none; the model's commands do not receive them."""


def show_places(environ: Mapping[str, str]) -> None:
    """Copy `_PLACES` into this process's environment, the only one that the cloud libraries read."""
    for name in _PLACES:
        if environ.get(name):
            os.environ.setdefault(name, environ[name])


class NotInstalled(Exception):
    """Raised if the packages of the extra `sdk` are missing."""


class NoCredentials(Exception):
    """Raised if a request could not be signed and was not sent; the message completes a sentence about the adapter."""


class CredentialsUnreachable(Exception):
    """Raised if the token source did not answer, so the request was not sent; the message completes a sentence."""


def is_about_credentials(error: Exception, client: str) -> bool:
    """Return whether an exception from a cloud's official client is about signing the request."""
    library = type(error).__module__.partition(".")[0]
    return bool(client) and (library in _LIBRARIES or any(base.__name__ in _OWN_WORDS for base in type(error).__mro__))


def why_no_credentials(error: Exception, client: str) -> Exception:
    """Return an exception with the reason and the remedy."""
    text = next((part for part in error.args if isinstance(part, str)), str(error))
    said = quote(text.strip().partition("\n")[0]).rstrip(". ")
    whose = WHOSE[client]
    if isinstance(error, ValueError) and "region" in said.lower():
        return NoCredentials("no AWS region is configured. Set opts.region or AWS_REGION")
    if any(base.__name__ in _UNREACHABLE for base in type(error).__mro__):
        return CredentialsUnreachable(f"no token from {whose}: no answer ({said})")
    return NoCredentials(f"no usable {whose} credentials ({said}). {_REMEDIES[whose]}")
