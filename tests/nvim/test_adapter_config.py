"""User-configured adapters and the resulting host settings: inheritance, CodeCompanion's shapes, keys, mistakes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest

from adapter_driver import FRESH, Adapters
from codecompanion import settings
from codecompanion.adapters.keys.key_source import FROM_FUNCTION
from codecompanion.adapters.offline.adapter import OfflineOptions
from codecompanion.adapters.openai_chat.render import RenderOptions
from harness import Nvim

KEYS = {
    "openai": "OPENAI_API_KEY",
    "openai_responses": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "xai": "XAI_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "kimi": "MOONSHOT_API_KEY",
    "novita": "NOVITA_API_KEY",
    "huggingface": "HUGGINGFACE_API_KEY",
    "groq": "GROQ_API_KEY",
    "together": "TOGETHER_API_KEY",
    "fireworks": "FIREWORKS_API_KEY",
    "cerebras": "CEREBRAS_API_KEY",
    "zai": "ZAI_API_KEY",
    "minimax": "MINIMAX_API_KEY",
    "nebius": "NEBIUS_API_KEY",
    "azure_openai": "AZURE_OPENAI_API_KEY",
}
NO_KEYS = "offline copilot chatgpt openai_compatible ollama llama_cpp vllm lmstudio bedrock vertex".split()


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nvim]:
    """Return one Neovim for all tests of this file."""
    with Nvim(tmp_path_factory.mktemp("adapters"), env={"LOCAL_URL": "http://10.0.0.1:9", "MY_KEY": "k"}) as nvim:
        yield nvim


def test_the_built_in_adapters_load_without_a_message(child: Nvim) -> None:
    adapters = Adapters(child, "{}")
    assert set(adapters.told["adapters"]) == {*KEYS, *NO_KEYS}
    assert {name: adapters.entry(name).key for name in KEYS} == KEYS
    assert {name: adapters.entry(name).key for name in NO_KEYS} == dict.fromkeys(NO_KEYS, "")
    assert adapters.said == ""


@pytest.mark.parametrize(
    "entry",
    [
        'function() return extend("openai_compatible", { formatted_name = "L", opts = { max_retries = 7 } }) end',
        '{ extends = "openai_compatible", formatted_name = "L", opts = { max_retries = 7 } }',
        'extend("openai_compatible", { formatted_name = "L", opts = { max_retries = 7 } })',
    ],
)
def test_an_adapter_may_be_a_function_or_a_table_that_extends_another(child: Nvim, entry: str) -> None:
    adapters = Adapters(child, f"{{ mine = {entry} }}")
    mine = adapters.entry("mine")
    assert (mine.name, mine.kind, mine.formatted_name, mine.max_retries) == ("mine", "openai_compatible", "L", 7)
    assert adapters.said == ""


def test_a_name_can_be_an_alias_of_another_adapter(child: Nvim) -> None:
    adapters = Adapters(child, '{ openai = "openai", fast = "openai", faster = "fast" }')
    assert adapters.entry("faster").base_url == "https://api.openai.com/v1"
    assert adapters.entry("faster").formatted_name == "faster"
    assert adapters.said == ""


def test_layers_are_merged_from_the_most_general_to_the_most_specific(child: Nvim) -> None:
    adapters = Adapters(
        child,
        """{
          base = { extends = "openai_compatible", env = { api_key = "MY_KEY", url = "http://a" },
                   schema = { temperature = { default = 0.1 }, top_p = { default = 0.9 } } },
          special = { extends = "base", schema = { temperature = { default = 0.7 } } },
          extend = { special = { env = { url = "http://b" } } },
        }""",
    )
    special = adapters.entry("special")
    assert special.parameters == {"temperature": 0.7, "top_p": 0.9}
    assert (special.key, special.base_url) == ("MY_KEY", "http://b")
    assert adapters.entry("base").base_url == "http://a"
    assert adapters.said == ""


@pytest.mark.parametrize(
    ("shape", "base_url", "chat_path", "models_path"),
    [
        ('env = { url = "http://h:1" }', "http://h:1", "/v1/chat/completions", "/v1/models"),
        ('env = { url = "http://h:1/" }', "http://h:1", "/v1/chat/completions", "/v1/models"),
        ('env = { url = "http://h:1/v1" }', "http://h:1/v1", "/chat/completions", "/models"),
        ('env = { url = "http://h/api/v1/" }', "http://h/api/v1", "/chat/completions", "/models"),
        ('env = { url = "http://h/v1beta/openai" }', "http://h/v1beta/openai", "/chat/completions", "/models"),
        ('env = { url = "http://h", chat_url = "/api/chat" }', "http://h", "/api/chat", "/v1/models"),
        ('env = { url = "http://h", models_endpoint = "/m" }', "http://h", "/v1/chat/completions", "/m"),
        ('env = { url = "LOCAL_URL" }', "http://10.0.0.1:9", "/v1/chat/completions", "/v1/models"),
        ('env = { url = function() return "http://f" end }', "http://f", "/v1/chat/completions", "/v1/models"),
        ('url = "https://h/v1/chat/completions"', "https://h/v1", "/chat/completions", "/models"),
        ('url = "https://h/odd/path"', "https://h", "/odd/path", "/models"),
        ('url = "${url}${chat_url}", env = { url = "http://h" }', "http://h", "/v1/chat/completions", "/v1/models"),
        (
            'url = "https://${host}/v1/chat/completions", env = { host = "x.y" }',
            "https://x.y/v1",
            "/chat/completions",
            "/models",
        ),
    ],
)
def test_addresses_are_joined_as_in_codecompanion(
    child: Nvim, shape: str, base_url: str, chat_path: str, models_path: str
) -> None:
    adapters = Adapters(child, f'{{ mine = {{ extends = "openai_compatible", {shape} }} }}')
    mine = adapters.entry("mine")
    assert (mine.base_url, mine.chat_path, mine.models_path) == (base_url, chat_path, models_path)
    assert adapters.said == ""


def test_parameters_models_and_windows_come_from_the_schema(child: Nvim) -> None:
    adapters = Adapters(
        child,
        """{ mine = { extends = "openai_compatible", parameters = { seed = 1 }, schema = {
          model = { default = function() return "b" end,
                    choices = { "b", "a", big = { meta = { context_window = 1000000 } } } },
          temperature = { default = 0.2, mapping = "parameters" },
          num_ctx = { default = 8192, mapping = "parameters.options" },
          max_tokens = { default = 2048 },
          top_p = { default = 0.5, enabled = function() return false end },
        } } }""",
    )
    mine = adapters.entry("mine")
    assert (mine.model, mine.models) == ("b", ("b", "a", "big"))
    assert mine.parameters == {"seed": 1, "temperature": 0.2, "options": {"num_ctx": 8192}}
    assert (mine.max_output_tokens, mine.max_tokens_field) == (2048, "max_tokens")
    assert adapters.told["models"] == {"big": {"context_window": 1000000}}
    assert adapters.said == ""


def test_options_are_converted_to_the_units_of_the_settings(child: Nvim) -> None:
    adapters = Adapters(
        child,
        """{ mine = { extends = "openai_compatible", opts = {
          timeout = 90000, connect_timeout = 1500, idle_timeout = 250, context_window = 32768, include_usage = false,
          parallel_tool_calls = false, vision = false, short_call_ids = true, system_role = "developer",
          send_reasoning = true, max_output_tokens = 100, stream = true, tools = true,
        } }, opts = { proxy = "http://proxy:3128" } }""",
    )
    mine = adapters.entry("mine")
    assert (mine.timeout_s, mine.connect_timeout_s, mine.idle_timeout_s) == (90, 1.5, 0.25)
    assert (mine.context_window, mine.include_usage, mine.parallel_tool_calls) == (32768, False, False)
    assert mine.max_output_tokens == 100
    assert msgspec.convert(mine.options, RenderOptions) == RenderOptions(
        send_reasoning=True,
        system_role="developer",
        one_system_message=True,
        alternate_roles=True,
        short_call_ids=True,
        image_input=False,
    )
    assert mine.proxy == "http://proxy:3128"
    assert adapters.entry("offline").proxy == ""
    assert adapters.said == ""


def test_the_offline_adapter_has_its_own_options(child: Nvim) -> None:
    """The options configure a recorded session in a small window."""
    adapters = Adapters(
        child,
        '{ offline = { opts = { playback = "/x.jsonl", delay_ms = 5, chunk_chars = 7, context_window = 9000 } } }',
    )
    offline = adapters.entry("offline")
    assert msgspec.convert(offline.options, OfflineOptions) == OfflineOptions(
        playback="/x.jsonl", delay_ms=5, chunk_chars=7
    )
    assert offline.context_window == 9000
    assert adapters.said == ""


def test_headers_are_passed_on_except_the_hosts_own(child: Nvim) -> None:
    adapters = Adapters(
        child,
        """{ mine = { extends = "openai_compatible", env = { team = "blue" }, headers = {
          ["Content-Type"] = "application/json", Authorization = "Bearer ${api_key}",
          ["X-Team"] = "${team}", ["api-key"] = "${api_key}",
        } } }""",
    )
    assert adapters.entry("mine").headers == {"X-Team": "blue", "api-key": "${api_key}"}
    assert adapters.said == ""


@pytest.mark.parametrize("place", ["OPENAI_API_KEY", "cmd:pass show x", "file:~/.key", ""])
def test_a_key_is_named_by_its_location(child: Nvim, place: str) -> None:
    adapters = Adapters(child, f'{{ mine = {{ extends = "openai", env = {{ api_key = "{place}" }} }} }}')
    assert adapters.entry("mine").key == place
    assert adapters.said == ""


KEYS_THEMSELVES = ["sk-proj-4f9a8c", "gsk_4f9a8clowercase", "4f9a8c77", "key with blanks", "4F9A8C77" * 4, "AB12" * 8]


@pytest.mark.parametrize("key", KEYS_THEMSELVES)
def test_a_literal_key_in_the_configuration_is_refused_and_never_shown(child: Nvim, key: str) -> None:
    """Lesson 44: neither in the error nor in the settings for the host."""
    adapters = Adapters(child, f'{{ mine = {{ extends = "openai", env = {{ api_key = "{key}" }} }} }}')
    assert "adapters.http.mine.env.api_key: expected an environment variable" in adapters.said
    assert 'set MINE_API_KEY in your shell, and write api_key = "$MINE_API_KEY"' in adapters.said
    assert key not in adapters.said
    assert key not in json.dumps(adapters.hello)
    assert adapters.entry("mine").key == f"literal:{key[:3]}"


@pytest.mark.parametrize("given", ["$MY_KEY", "${MY_KEY}"])
def test_the_name_of_a_key_variable_may_be_written_as_in_a_shell(child: Nvim, given: str) -> None:
    adapters = Adapters(child, f'{{ mine = {{ extends = "openai", env = {{ api_key = "{given}" }} }} }}')
    assert adapters.entry("mine").key == "MY_KEY"
    assert adapters.said == ""


def test_a_key_function_is_called_only_if_its_adapter_is_used(child: Nvim) -> None:
    adapters = Adapters(
        child,
        """{ mine = { extends = "openai", env = { api_key = function(adapter)
               _G.asked = (_G.asked or 0) + 1
               return " s3cret-" .. adapter.extends .. "\\n"
             end } } }""",
    )
    assert adapters.entry("mine").key == FROM_FUNCTION
    assert "s3cret" not in json.dumps(adapters.hello)
    assert child.lua("return _G.asked") is None
    assert child.lua('return config.secrets("offline")') == {}
    assert child.lua('return config.secrets("mine")') == {"mine": "s3cret-openai"}
    assert child.lua("return _G.asked") == 1
    assert adapters.said == ""


def test_the_key_of_the_summary_adapter_is_requested_too(child: Nvim) -> None:
    child.lua(
        FRESH
        + """
        config.setup({
          adapters = { http = { writer = { extends = "openai", env = { api_key = function() return "w" end } } } },
          interactions = { chat = { opts = { context_management = { compaction = { adapter = "writer" } } } } },
        })"""
    )
    assert child.lua("return config.secrets()") == {"writer": "w"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("error('locked')", "adapters.http.mine.env.api_key: the function failed: "),
        ("return nil", "adapters.http.mine.env.api_key: the function returned no key"),
        ("return ''", "adapters.http.mine.env.api_key: the function returned no key"),
        ("return 7", "adapters.http.mine.env.api_key: the function returned no key"),
    ],
)
def test_a_failing_key_function_is_named(child: Nvim, body: str, said: str) -> None:
    adapters = Adapters(child, f'{{ mine = {{ extends = "openai", env = {{ api_key = function() {body} end }} }} }}')
    secrets, error = child.lua('return { config.secrets("mine") }')
    assert secrets == {}
    assert said in error
    assert said in adapters.said


@pytest.mark.parametrize(
    ("http", "said"),
    [
        ("{ mine = {} }", 'adapters.http.mine: `extends` is missing, for example extends = "openai_compatible"'),
        ('{ mine = "opnai" }', 'adapters.http.mine: there is no adapter "opnai"; did you mean "openai"?'),
        ('{ mine = "nonesuch" }', 'adapters.http.mine: there is no adapter "nonesuch"; the adapters are'),
        ('{ nonesuch = function() return extend("nonesuch", {}) end }', 'no adapter "nonesuch"; the adapters are'),
        ('{ a = { extends = "b" }, b = { extends = "a" } }', 'adapters.http.a: extends itself through "a"'),
        ('{ mine = function() error("boom") end }', "adapters.http.mine: the function failed: "),
        ("{ mine = function() return 7 end }", "adapters.http.mine: the function returned number; expected a table"),
        ("{ mine = 7 }", "adapters.http.mine: got 7; expected string, table or function"),
        (
            '{ mine = { extends = "openai", hedaers = {} } }',
            "adapters.http.mine.hedaers: unknown key; did you mean `headers`?",
        ),
        (
            '{ mine = { extends = "openai", zzz = {} } }',
            "adapters.http.mine.zzz: unknown key; expected one of",
        ),
        (
            '{ mine = { extends = "openai", handlers = {} } }',
            "adapters.http.mine.handlers: the plugin builds the requests and reads the replies",
        ),
        ('{ mine = { extends = "openai", env = "x" } }', "adapters.http.mine.env: got string; expected a table"),
        ('{ mine = { extends = "openai", url = 7 } }', "adapters.http.mine.url: got number; expected a string"),
        ('{ mine = { extends = "openai", url = "localhost" } }', "adapters.http.mine.url: got "),
        ('{ mine = { extends = "openai", env = { url = "ftp://x" } } }', 'env.url: got "ftp://x"; expected http://'),
        ('{ mine = { extends = "openai", env = { url = "cmd:x" } } }', "env.url: only env.api_key may be read from"),
        ('{ mine = { extends = "openai", url = "http://${hst}/x" } }', "adapters.http.mine.url: ${hst} is not in env"),
        ('{ mine = { extends = "openai", env = { api_key = 7 } } }', "env.api_key: got number; expected a string or a"),
        (
            '{ mine = { extends = "openai", headers = { A = 1 } } }',
            "adapters.http.mine.headers.A: got number; expected",
        ),
        ('{ mine = { extends = "openai", schema = { model = "x" } } }', "schema.model: got string; expected { default"),
        ('{ mine = { extends = "openai", schema = { model = { deflt = 1 } } } }', "schema.model.deflt: unknown key"),
        ('{ mine = { extends = "openai", schema = { model = { default = 1 } } } }', "schema.model.default: got number"),
        (
            '{ mine = { extends = "openai", schema = { model = { choices = 1 } } } }',
            "schema.model.choices: expected a table",
        ),
        (
            '{ mine = { extends = "openai", schema = { max_tokens = { default = -1 } } } }',
            "schema.max_tokens.default: got -1; expected a number of tokens",
        ),
        (
            '{ mine = { extends = "openai", schema = { x = { default = 1, mapping = "body" } } } }',
            'schema.x.mapping: got "body"',
        ),
        (
            '{ mine = { extends = "openai", opts = { max_retrys = 1 } } }',
            "opts.max_retrys: unknown key; did you mean `max_retries`?",
        ),
        (
            '{ mine = { extends = "openai", opts = { max_retries = -1 } } }',
            "opts.max_retries: got -1; expected an integer of 0 or more",
        ),
        (
            '{ mine = { extends = "openai", opts = { timeout = 1.5 } } }',
            "opts.timeout: got 1.5; expected an integer of 1 or more",
        ),
        (
            '{ mine = { extends = "openai", opts = { system_role = "root" } } }',
            'got "root"; expected "system" or "developer"',
        ),
        ('{ mine = { extends = "openai", opts = { stream = false } } }', "opts.stream: cannot be switched off here"),
        (
            '{ mine = { extends = "openai", opts = { qqqqqq = 1 } } }',
            "opts.qqqqqq: unknown key; expected one of alternate_",
        ),
        ('{ mine = { extends = "offline", opts = { timeout = 5 } } }', "has no effect on an adapter of kind offline"),
        (
            "{ extend = { opnai = {} } }",
            'adapters.http.extend.opnai: there is no adapter "opnai"; did you mean "openai"?',
        ),
        ("{ extend = { openai = { evn = {} } } }", "adapters.http.extend.openai.evn: unknown key; did you mean `env`?"),
        ("{ extend = { openai = 7 } }", "adapters.http.extend.openai: got number; expected a table"),
    ],
)
def test_a_mistake_in_an_adapter_names_its_key_path(child: Nvim, http: str, said: str) -> None:
    adapters = Adapters(child, http)
    assert said in adapters.said
    assert settings.load(adapters.told).chat.adapter == "offline"


def test_a_mistake_found_at_setup_and_at_host_start_is_reported_once(child: Nvim) -> None:
    adapters = Adapters(child, '{ mine = { extends = "openai", zzz = 1 } }')
    assert adapters.said.count("adapters.http.mine.zzz") == 1


def test_a_broken_adapter_does_not_affect_the_others(child: Nvim) -> None:
    adapters = Adapters(child, '{ broken = {}, good = { extends = "openai" } }')
    assert "broken" not in adapters.told["adapters"]
    assert adapters.entry("good").kind == "openai"


def test_extend_with_wrong_arguments_names_the_expected_ones(child: Nvim) -> None:
    child.lua(FRESH)
    said = child.lua('return select(2, pcall(extend, "openai", "x"))')
    assert 'extend("openai_compatible", { … })' in said


def test_a_discontinued_service_is_distinguished_from_a_typo(child: Nvim) -> None:
    """Configurations of other plugins still name it."""
    adapters = Adapters(child, '{ mine = { extends = "github_models" } }')
    assert "GitHub closed GitHub Models on 30 July 2026" in adapters.said
