"""Transport options of an entry: validation errors name the key path, and the environment supplies missing values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.catalog import limits_of, lookup, price_usd
from codecompanion.adapters.clouds import address_of, credentials_of
from codecompanion.adapters.entries.resolve import resolve_adapters
from codecompanion.adapters.registry import AdapterRegistry, read_settings
from codecompanion.errors import ConfigError
from codecompanion.model.messages import Usage


def entry(builtin: str, environ: dict[str, str] | None = None, **fields: Any) -> AdapterSettings:
    """Return the settings of one entry, `mine`."""
    found = resolve_adapters({"mine": {"builtin": builtin, **fields}}, proxy="", environ=environ or {})
    assert found.mistakes == []
    return msgspec.convert(found.adapters["mine"], AdapterSettings)


def problem_of(builtin: str, opts: dict[str, Any], environ: dict[str, str] | None = None, **fields: Any) -> str:
    """Return the error that makes an entry unusable, or ""."""
    settings = entry(builtin, environ, opts=opts, **fields)
    registry = AdapterRegistry({"mine": settings}, read_blob=lambda _: b"", summarise=lambda messages, limit: "")
    try:
        registry.check("mine")
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("builtin", "opts", "problem"),
    [
        ("anthropic", {"client": "bedrock"}, 'opts.client: "bedrock" needs transport = "sdk"'),
        ("bedrock", {"transport": "httpx2"}, 'opts.client: "bedrock" needs transport = "sdk"'),
        (
            "openai",
            {"transport": "sdk", "client": "vertex"},
            'opts.client: "vertex" has no effect on an adapter of kind openai; expected "azure"',
        ),
        ("anthropic", {"transport": "sdk", "region": "eu"}, 'opts.region: needs client = "bedrock" or'),
        ("anthropic", {"project_id": "p"}, 'opts.project_id: needs client = "vertex"'),
        (
            "vertex",
            {"region": "eu", "project_id": "p", "aws_profile": "w"},
            'opts.aws_profile: needs client = "bedrock"',
        ),
        ("vertex", {"project_id": "p"}, "opts.region: is not set; expected a region here or in CLOUD_ML_REGION"),
        ("vertex", {"region": "global"}, "opts.project_id: is not set; expected a project here or in ANTHROPIC_VERTEX"),
        (
            "anthropic",
            {"transport": "sdk", "client": "bedrock_mantle"},
            "opts.region: is not set; expected a region here or in AWS_REGION",
        ),
    ],
)
def test_a_mistake_names_its_key(builtin: str, opts: dict[str, Any], problem: str) -> None:
    """Options without an effect and missing options are reported."""
    assert problem_of(builtin, opts).startswith(f"adapters.http.mine.{problem}")


def test_a_key_beside_a_client_is_a_mistake() -> None:
    """The client would not use the key; a provider's default key is dropped automatically."""
    assert problem_of("bedrock", {}, key="MY_KEY") == (
        "adapters.http.mine.env.api_key: the client provides the credentials of AWS; expected no key"
    )
    opts = {"transport": "sdk", "client": "bedrock"}
    assert entry("anthropic", opts=opts, key="ANTHROPIC_API_KEY").key == ""
    assert problem_of("anthropic", opts, key="ANTHROPIC_API_KEY") == ""


@pytest.mark.parametrize("builtin", ["openai", "openai_compatible", "openai_responses", "anthropic", "gemini"])
def test_any_plain_endpoint_may_use_its_official_client(builtin: str) -> None:
    """The official client uses the entry's own key and URL."""
    settings = entry(builtin, opts={"transport": "sdk"})
    plain = entry(builtin)
    assert settings.transport == "sdk"
    assert msgspec.structs.replace(settings, transport="httpx2") == plain


@pytest.mark.parametrize("kind", ["copilot", "chatgpt", "offline"])
def test_an_entry_without_an_official_client_is_reported(kind: str) -> None:
    """The error names the key path of the option."""
    found = resolve_adapters({"mine": {"builtin": kind, "opts": {"transport": "sdk"}}}, proxy="", environ={})
    assert found.mistakes == [f"adapters.http.mine.opts.transport: has no effect on an adapter of kind {kind}"]


@pytest.mark.parametrize(
    ("client", "region", "environ", "address"),
    [
        ("bedrock", "eu-west-1", {}, "https://bedrock-runtime.eu-west-1.amazonaws.com"),
        ("bedrock", "", {}, "https://bedrock-runtime.amazonaws.com"),
        ("bedrock", "", {"ANTHROPIC_BEDROCK_BASE_URL": "https://vpc.example/"}, "https://vpc.example"),
        ("bedrock_mantle", "us-east-1", {}, "https://bedrock-mantle.us-east-1.api.aws/anthropic"),
        ("bedrock_mantle", "", {}, ""),
        ("vertex", "global", {}, "https://aiplatform.googleapis.com/v1"),
        ("vertex", "eu", {}, "https://aiplatform.eu.rep.googleapis.com/v1"),
        ("vertex", "us-east5", {}, "https://us-east5-aiplatform.googleapis.com/v1"),
        ("azure", "", {}, ""),
    ],
)
def test_the_address_of_a_cloud_is_computed(client: str, region: str, environ: dict[str, str], address: str) -> None:
    """The URL equals that of the official client, because time limits, prices and signatures depend on it."""
    assert address_of(client, region, environ) == address


@pytest.mark.parametrize(
    ("client", "region"), [("bedrock", "eu-west-1"), ("bedrock_mantle", "us-east-1"), ("vertex", "eu"), ("vertex", "x")]
)
def test_the_addresses_equal_the_official_clients(client: str, region: str) -> None:
    """The plugin and the official clients compute the same URLs."""
    from anthropic.lib.bedrock import AsyncAnthropicBedrock, AsyncAnthropicBedrockMantle
    from anthropic.lib.vertex import AsyncAnthropicVertex

    makers: dict[str, Any] = {
        "bedrock": lambda: AsyncAnthropicBedrock(aws_region=region),
        "bedrock_mantle": lambda: AsyncAnthropicBedrockMantle(aws_region=region),
        "vertex": lambda: AsyncAnthropicVertex(region=region, project_id="p"),
    }
    assert str(makers[client]().base_url).rstrip("/") == address_of(client, region, {})


def test_the_environment_completes_an_entry() -> None:
    """Region and project are read as in the official clients; the entry's values take precedence."""
    environ = {"AWS_DEFAULT_REGION": "eu-central-1", "CLOUD_ML_REGION": "global", "GOOGLE_CLOUD_PROJECT": "p"}
    aws = entry("bedrock", environ)
    assert (aws.region, aws.base_url) == ("eu-central-1", "https://bedrock-runtime.eu-central-1.amazonaws.com")
    assert entry("bedrock", {**environ, "AWS_REGION": "us-west-2"}).region == "us-west-2"
    assert entry("bedrock", environ, opts={"region": "eu-north-1"}).region == "eu-north-1"
    google = entry("vertex", environ)
    assert (google.region, google.project_id) == ("global", "p")
    assert entry("vertex", environ, opts={"project_id": "q"}).project_id == "q"
    assert entry("bedrock", url="https://vpc.example/").base_url == "https://vpc.example"


def test_the_address_of_azure_comes_from_its_entry() -> None:
    """The built-in `azure_openai` is used without its key; the base URL of Foundry includes its `/anthropic` path."""
    opts = {"transport": "sdk", "client": "azure"}
    environ = {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com"}
    mine = entry("azure_openai", environ, opts=opts, key="AZURE_OPENAI_API_KEY")
    assert (mine.base_url, mine.key) == ("https://mine.openai.azure.com/openai/v1", "")
    foundry = entry("anthropic", url="https://mine.services.ai.azure.com/anthropic/v1/messages", opts=opts)
    assert (foundry.base_url, foundry.chat_path) == ("https://mine.services.ai.azure.com/anthropic", "")


def test_a_cloud_is_never_asked_for_its_models() -> None:
    """Bedrock has no model listing at the URL of its replies; its entry lists the models."""
    settings = read_settings(resolve_adapters({}, proxy="", environ={}).adapters)["bedrock"]
    registry = AdapterRegistry({"bedrock": settings}, read_blob=lambda _: b"", summarise=lambda messages, limit: "")
    adapter = registry.get("bedrock")
    assert not adapter.counts_tokens(settings.model)
    assert b'"model":"global.anthropic' in adapter.render(ChatRequest(messages=(), model=settings.model))
    assert credentials_of(settings.client) == "the credentials of AWS"


_AWS, _GOOGLE = "https://bedrock-runtime.eu-west-1.amazonaws.com", "https://europe-west1-aiplatform.googleapis.com/v1"


@pytest.mark.parametrize(
    ("address", "model", "window"),
    [
        (_AWS, "anthropic.claude-sonnet-4-20250514-v1:0", 200_000),
        (_AWS, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000),
        (_AWS, "global.anthropic.claude-haiku-4-5-20251001-v1:0", 200_000),
        (_AWS, "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-sonnet-4-20250514-v1:0", 200_000),
        ("https://bedrock-mantle.eu-west-1.api.aws/anthropic", "anthropic.claude-opus-4-8", 1_000_000),
        (_GOOGLE, "claude-sonnet-4@20250514", 200_000),
        (_GOOGLE, "claude-haiku-4-5@20251001", 200_000),
        (_GOOGLE, "claude-opus-4-6", 1_000_000),
    ],
)
def test_cloud_model_names_have_windows_and_prices(address: str, model: str, window: int) -> None:
    """The names contain region, date and version."""
    limits, facts = limits_of(address, model), lookup(address, model)
    assert limits is not None
    assert limits.context_window == window
    assert facts is not None
    assert (price_usd(facts, Usage(input_tokens=1_000, output_tokens=100)) or 0) > 0
