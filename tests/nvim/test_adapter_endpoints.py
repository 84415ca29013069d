"""The built-in adapters: each is created, and renders a request that its endpoint accepts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from adapter_driver import Adapters
from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.registry import AdapterRegistry, make_wire
from codecompanion.adapters.wire_format import origin_of
from codecompanion.errors import ConfigError
from codecompanion.model.messages import DocumentPart, ImagePart, Message, ReasoningPart, TextPart, ToolCall, ToolSpec
from harness import Nvim
from tests.providers.chat.rules import refusal_of
from tests.providers.loopback.wire_schemas import schema_problems

LOCAL = {
    "ollama": ("http://127.0.0.1:11434", "/api/ps"),
    "llama_cpp": ("http://localhost:8080", "/props"),
    "vllm": ("http://localhost:8000", "/v1/models"),
    "lmstudio": ("http://localhost:1234", "/api/v0/models"),
}
HOSTED = ("groq", "together", "fireworks", "cerebras", "zai", "minimax", "nebius")
CLOUD = ("openai", "openrouter", "deepseek", "mistral", "xai", "gemini", "kimi", "novita", "huggingface", *HOSTED)
CHAT = (*LOCAL, *CLOUD, "azure_openai", "openai_compatible")
TOOL = ToolSpec("weather", "Tell the weather", {"type": "object", "properties": {"city": {"type": "string"}}})


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nvim]:
    """Return one Neovim for all tests of this file."""
    environment = {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/", "OLLAMA_HOST": ""}
    with Nvim(tmp_path_factory.mktemp("endpoints"), env=environment) as nvim:
        yield nvim


@pytest.fixture(scope="module")
def ready(child: Nvim) -> Adapters:
    """Return the adapters of an empty configuration."""
    return Adapters(child, "{}")


def conversation(origin: str) -> tuple[Message, ...]:
    """Return a chat with everything that endpoints treat differently, its encrypted parts in the first turn."""
    attached = (TextPart("Look:"), ImagePart(sha256="i"), DocumentPart(sha256="d", path="a.pdf"))
    own = ReasoningPart("Hm.", "reasoning_details", origin, '[{"type": "reasoning.text", "text": "Hm."}]')
    foreign = ReasoningPart("Hm.", "thinking", "anthropic@elsewhere", "{}")
    return (
        Message(id="s", role="system", content="Be brief."),
        Message(id="u", role="user", content=attached),
        Message(
            id="a",
            role="assistant",
            content=(ReasoningPart("Hm."),),
            tool_calls=(ToolCall("call_12345678", "weather"),),
        ),
        Message(id="r", role="tool", content="sunny", tool_call_id="call_12345678"),
        Message(
            id="b",
            role="assistant",
            content=(own, foreign, TextPart("Hat.")),
            tool_calls=(ToolCall("x", "weather", origin="elsewhere", encrypted="{}"),),
        ),
        Message(id="q", role="tool", content="", tool_call_id="x"),
        Message(id="c", role="assistant", content=(ReasoningPart("So.", "reasoning"), TextPart("Sunny."))),
        Message(id="v", role="user", content="Thanks"),
    )


@pytest.mark.parametrize("name", CHAT)
def test_a_built_in_endpoint_renders_only_supported_fields(ready: Adapters, name: str) -> None:
    """With tools, files and reasoning: only the entry's own extensions go beyond OpenAI's format."""
    entry = ready.entry(name)
    wire = make_wire(entry, lambda _: b"%PDF-1.7")
    history = conversation(origin_of("openai_chat", entry.base_url))
    request = ChatRequest(messages=history, tools=(TOOL,), model=entry.model or "m", max_output_tokens=100, chat_id="c")
    body = msgspec.json.decode(wire.render(request).body)
    fields = ("reasoning_details", "reasoning_content", "reasoning")
    sent = [{key for key in message if key in fields} for message in body["messages"] if message["role"] == "assistant"]
    wanted = entry.options.get("send_reasoning") == "tool_turns"
    first, own, last = sent
    assert first == ({"reasoning_content"} if wanted else set())
    assert own == {"reasoning_details"}
    assert last == ({entry.options.get("reasoning_field") or "reasoning"} if wanted else set())
    bare = [{k: v for k, v in message.items() if k not in fields} for message in body["messages"]]
    plain = {key: value for key, value in body.items() if key not in entry.parameters} | {"messages": bare}
    assert refusal_of(plain, models=(), window=0) is None
    assert schema_problems("openai.chat", plain) == []
    assert body[entry.max_tokens_field] == 100
    kinds = [part["type"] for part in body["messages"][1]["content"]]
    image = "image_url" if entry.options.get("image_input", True) else "text"
    assert kinds == ["text", image, "file" if entry.options.get("document_input") else "text"]


@pytest.mark.parametrize("name", ["openai_responses", "anthropic"])
def test_the_other_formats_are_created_with_all_their_options(child: Nvim, name: str) -> None:
    """Every allowed option is used."""
    opts = {
        "openai_responses": 'compaction = false, reasoning_summary = "none", prompt_cache_key = false',
        "anthropic": """compaction = false, compaction_instructions = "Be brief.", pause_after_compaction = true,
            clear_tool_uses = { trigger = 5000, keep = 1, exclude_tools = { "memory", "x" }, clear_at_least = 10 },
            cache = false, cache_ttl = "1h" """,
    }[name]
    common = "vision = false, documents = false, context_window = 9000, max_output_tokens = 2000, timeout = 1000"
    adapters = Adapters(child, f"{{ {name} = {{ opts = {{ {opts}, {common} }} }} }}")
    assert adapters.said == ""
    entry = adapters.entry(name)
    assert (entry.context_window, entry.max_output_tokens, entry.timeout_s) == (9000, 2000, 1)
    wire = make_wire(entry, lambda _: b"")
    assert not wire.compacts_natively(entry.model)
    assert wire.render(ChatRequest(messages=conversation(""), model=entry.model)).body


def test_compaction_is_on_by_default_and_clearing_is_opt_in(child: Nvim) -> None:
    """R-534, R-536."""
    adapters = Adapters(child, "{ anthropic = { opts = { clear_tool_uses = true } } }")
    assert adapters.said == ""
    for name in ("openai_responses", "anthropic"):
        entry = adapters.entry(name)
        assert make_wire(entry, lambda _: b"").compacts_natively(entry.model), name
    assert adapters.entry("anthropic").options == {"clear_tool_uses": {}}
    off = Adapters(child, "{ anthropic = { opts = { clear_tool_uses = false } } }")
    assert off.entry("anthropic").options == {}


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize(
    "shape",
    [
        'env = { url = "http://box:9" }',
        'env = { url = "http://box:9/v1/" }',
        'url = "http://box:9/v1/chat/completions"',
    ],
)
def test_a_local_server_on_another_host_keeps_its_other_pages(child: Nvim, name: str, shape: str) -> None:
    """Windows are reported outside the version path, wherever the server is."""
    entry = Adapters(child, f"{{ {name} = {{ {shape} }} }}").entry(name)
    assert entry.base_url == "http://box:9"
    assert (entry.chat_path, entry.models_path, entry.limits_path) == (
        "/v1/chat/completions",
        "/v1/models",
        LOCAL[name][1],
    )


def test_local_servers_are_searched_at_their_ports(ready: Adapters) -> None:
    """As documented."""
    assert {name: (ready.entry(name).base_url, ready.entry(name).limits_path) for name in LOCAL} == LOCAL


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434"),  # noqa: S104 - what users have there
        ("0.0.0.0:1234", "http://127.0.0.1:1234"),
        ("box", "http://box:11434"),
        ("https://ollama.example/", "https://ollama.example"),
    ],
)
def test_ollama_is_at_the_address_in_its_own_variable(child: Nvim, host: str, address: str) -> None:
    """OLLAMA_HOST may be the address it binds to."""
    child.lua(f'vim.env.OLLAMA_HOST = "{host}"')
    try:
        assert Adapters(child, "{}").entry("ollama").base_url == address
    finally:
        child.lua("vim.env.OLLAMA_HOST = nil")


@pytest.mark.parametrize(
    ("entry", "base_url"),
    [
        ('{ extends = "anthropic", env = { url = "https://gw/v1" } }', "https://gw"),
        ('{ extends = "anthropic", env = { url = "https://gw/anthropic" } }', "https://gw/anthropic"),
        ('{ extends = "anthropic", url = "https://gw/v1/messages" }', "https://gw"),
        ('{ extends = "openai_responses", env = { url = "https://gw" } }', "https://gw/v1"),
        ('{ extends = "openai_responses", env = { url = "https://gw/v1" } }', "https://gw/v1"),
        ('{ extends = "openai_responses", url = "https://gw/v1/responses" }', "https://gw/v1"),
    ],
)
def test_the_address_of_a_gateway_may_include_its_version(child: Nvim, entry: str, base_url: str) -> None:
    """The wire format adds its own path."""
    adapters = Adapters(child, f"{{ mine = {entry} }}")
    assert adapters.said == ""
    assert (adapters.entry("mine").base_url, adapters.entry("mine").chat_path) == (base_url, "")


def test_an_entry_written_for_codecompanion_keeps_working(child: Nvim) -> None:
    """R-503: the forms in its own documentation are accepted."""
    adapters = Adapters(
        child,
        """{
          anthropic = function() return extend("anthropic", {
            env = { api_key = "MY_CLAUDE_KEY" },
            headers = { ["content-type"] = "application/json", ["x-api-key"] = "${api_key}",
                        ["anthropic-version"] = "2023-06-01" },
            opts = { compaction = false, documents = true, vision = true, stream = true, tools = true },
            schema = { model = { default = "claude-opus-4-6" }, extended_thinking = { default = true },
                       thinking_budget = { default = 8000 }, max_tokens = { default = 32000 } },
          }) end,
          openai_responses = function() return extend("openai_responses", {
            schema = { model = { default = "gpt-5.4" }, ["reasoning.effort"] = { default = "high" },
                       verbosity = { default = "low", mapping = "parameters.text" } },
          }) end,
        }""",
    )
    assert adapters.said == ""
    claude = adapters.entry("anthropic")
    assert (claude.key, claude.model, claude.max_output_tokens) == ("MY_CLAUDE_KEY", "claude-opus-4-6", 32000)
    assert claude.parameters == {"thinking": {"type": "enabled", "budget_tokens": 8000}}
    assert claude.headers == {"anthropic-version": "2023-06-01"}
    assert claude.options["compaction"] is False
    responses = adapters.entry("openai_responses")
    assert responses.parameters == {"reasoning": {"effort": "high"}, "text": {"verbosity": "low"}}


@pytest.mark.parametrize(
    ("schema", "thinking"),
    [
        ("extended_thinking = { default = true }", {"type": "adaptive"}),
        ("extended_thinking = { default = false }, thinking_budget = { default = 2000 }", None),
        ("thinking_budget = { default = 2000 }", {"type": "enabled", "budget_tokens": 2000}),
    ],
)
def test_reasoning_is_requested_in_the_models_own_form(child: Nvim, schema: str, thinking: Any) -> None:
    """Models with a thinking budget get one; the others decide on their own."""
    adapters = Adapters(child, f"{{ anthropic = {{ schema = {{ {schema} }} }} }}")
    assert adapters.said == ""
    assert adapters.entry("anthropic").parameters.get("thinking") == thinking


def test_azure_is_addressed_by_its_resource_with_the_key_in_its_own_header(ready: Adapters) -> None:
    """In the v1 API there is no `api-version`, and the deployment is the model."""
    azure = ready.entry("azure_openai")
    assert (azure.base_url, azure.key_header) == ("https://mine.openai.azure.com/openai/v1", "api-key")


def test_azure_by_deployment_keeps_its_api_version(child: Nvim) -> None:
    """The URL is that of codecompanion.nvim's own adapter."""
    adapters = Adapters(
        child,
        """{ azure_openai = {
          url = "${endpoint}/openai/deployments/${deployment}/chat/completions?api-version=${api_version}",
          env = { api_version = "2024-10-21", deployment = "schema.model.default" },
          schema = { model = { default = "my-gpt" } },
          headers = { ["api-key"] = "${api_key}" },
        } }""",
    )
    assert adapters.said == ""
    azure = adapters.entry("azure_openai")
    assert azure.base_url == "https://mine.openai.azure.com/openai/deployments/my-gpt?api-version=2024-10-21"
    assert (azure.chat_path, azure.key_header, azure.headers) == ("/chat/completions", "api-key", {})


def test_azure_without_an_address_is_a_mistake_only_if_used(child: Nvim) -> None:
    """It is built in, so the user has not asked for it. Its key is sent nowhere else."""
    child.lua("vim.env.AZURE_OPENAI_ENDPOINT = nil")
    try:
        adapters = Adapters(child, "{}")
        assert adapters.said == ""
        entry = adapters.entry("azure_openai")
    finally:
        child.lua('vim.env.AZURE_OPENAI_ENDPOINT = "https://mine.openai.azure.com/"')
    registry = AdapterRegistry({entry.name: entry}, read_blob=lambda _: b"", summarise=lambda messages, limit: "")
    with pytest.raises(ConfigError, match="AZURE_OPENAI_ENDPOINT"):
        registry.check("azure_openai")


@pytest.mark.parametrize(
    ("http", "said"),
    [
        ('{ anthropic = { opts = { cache_ttl = "2h" } } }', 'opts.cache_ttl: got "2h"; expected "5m" or "1h"'),
        (
            "{ anthropic = { opts = { compaction = 1 } } }",
            "adapters.http.anthropic.opts.compaction: got 1; expected boolean",
        ),
        (
            "{ anthropic = { opts = { clear_tool_uses = { keep = -1 } } } }",
            "opts.clear_tool_uses.keep: got -1; expected an integer of 0 or more",
        ),
        (
            "{ anthropic = { opts = { clear_tool_uses = { kep = 1 } } } }",
            "opts.clear_tool_uses.kep: unknown key; expected one of clear_at_least, exclude_tools, keep, trigger",
        ),
        (
            '{ anthropic = { opts = { clear_tool_uses = { exclude_tools = "x" } } } }',
            'exclude_tools: got "x"; expected a list of strings',
        ),
        (
            "{ anthropic = { opts = { clear_tool_uses = 3 } } }",
            "opts.clear_tool_uses: got 3; expected boolean or table",
        ),
        (
            "{ openai = { opts = { compaction = true } } }",
            "opts.compaction: has no effect on an adapter of kind openai",
        ),
        ("{ anthropic = { opts = { short_call_ids = true } } }", "has no effect on an adapter of kind anthropic"),
        ('{ deepseek = { opts = { send_reasoning = "yes" } } }', 'got "yes"; expected boolean or "tool_turns"'),
        (
            "{ anthropic = { schema = { thinking_budget = { default = 5 } } } }",
            "schema.thinking_budget.default: got 5; expected a whole number of tokens, 1024 or more",
        ),
        (
            '{ anthropic = { schema = { extended_thinking = { default = "x" } } } }',
            'schema.extended_thinking.default: got "x"; expected true or false',
        ),
    ],
)
def test_a_mistake_names_its_key_and_the_expected_value(child: Nvim, http: str, said: str) -> None:
    adapters = Adapters(child, http)
    assert said in adapters.said


def test_help_file_fields_are_not_sent_to_the_host(ready: Adapters) -> None:
    """Entries that the user never mentioned are not sent either."""
    assert ready.hello["adapters"] == {}
    fields = set(AdapterSettings.__struct_fields__)
    for name, table in ready.told["adapters"].items():
        assert set(table) <= fields, name
