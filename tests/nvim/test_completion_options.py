"""The options `completion = {…}`: mistakes, and the settings sent to the host (R-261)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from codecompanion import settings
from harness import Nvim
from test_config import Config

SECRET = "sk-live-0123456789abcdef0123"


@pytest.fixture
def config(nvim_factory: Callable[..., Nvim]) -> Config:
    return Config(nvim_factory())


def test_the_defaults_are_those_of_the_document(config: Config) -> None:
    """R-261, R-262: the defaults are off, local, 300 ms, 128 tokens, temperature 0.1, automatic, multi-line."""
    config.setup("{}")
    told = settings.load(config.for_host()).completion
    assert (told.enabled, told.endpoint, told.model) == (False, "ollama", "qwen2.5-coder")
    assert (told.max_tokens, told.temperature, told.multi_line) == (128, 0.1, True)
    assert (told.url, told.adapter, told.api_key, told.family) == ("", "", "", "")
    lua = config.eval("config.options.completion")
    assert (lua["debounce"], lua["trigger"]) == (300, "automatic")
    assert config.eval("vim.tbl_isempty(config.options.completion.keymaps)")


def test_the_options_reach_the_host(config: Config) -> None:
    """The named key is looked up in the environment, so the host process does not inherit it."""
    config.setup(
        "{ completion = { enabled = true, endpoint = 'mistral', api_key = 'CODESTRAL_API_KEY', timeout = 2500,"
        " model = 'codestral-latest', multi_line = false, family = 'starcoder', url = 'https://example.org' } }"
    )
    assert config.errors == ""
    told = settings.load(config.for_host()).completion
    assert (told.api_key, told.timeout_s, told.multi_line) == ("CODESTRAL_API_KEY", 2.5, False)
    assert (told.url, told.family) == ("https://example.org", "starcoder")
    assert "CODESTRAL_API_KEY" in config.eval("config.adapters().keys")


@pytest.mark.parametrize(
    ("option", "wanted"),
    [
        ("debounce = 49", "completion.debounce: got 49; the minimum is 50"),
        ("endpoint = 'olama'", 'completion.endpoint: got "olama"'),
        ("trigger = 'auto'", 'completion.trigger: got "auto"'),
        ("url = 'ftp://localhost'", "completion.url: expected an address that begins with http:// or https://"),
        (f"api_key = '{SECRET}'", "completion.api_key: expected an environment variable"),
        ("filetypes = { 'lua', 'python' }", "completion.filetypes: 1 = lua; expected filetypes with true or false"),
        ("keymaps = { acept = '<C-l>' }", "did you mean `accept`?"),
        ("max_tokens = 0", "completion.max_tokens: got 0; the minimum is 1"),
        ("adapter = 'opnai'", 'completion.adapter: there is no adapter "opnai"'),
        ("enable = true", "did you mean `enabled`?"),
    ],
)
def test_mistakes_are_reported_with_their_key(config: Config, option: str, wanted: str) -> None:
    """Each report names the key path and the expected value, and never repeats a secret; the default applies."""
    config.setup(f"{{ completion = {{ {option} }} }}")
    assert wanted in "\n".join(config.eval("config.findings().problems"))
    assert SECRET not in str(config.eval("config.findings().problems"))
    assert settings.load(config.for_host()) == settings.load({})


def test_filetypes_are_merged_with_the_defaults(config: Config) -> None:
    """Adding a filetype does not enable gitcommit."""
    config.setup("{ completion = { filetypes = { markdown = false, help = true } } }")
    filetypes = config.eval("config.options.completion.filetypes")
    assert (filetypes["*"], filetypes["markdown"], filetypes["help"], filetypes["gitcommit"]) == (
        True,
        False,
        True,
        False,
    )
