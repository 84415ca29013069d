"""A configuration copied from codecompanion.nvim starts without errors: equivalent options apply, others are listed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from foreign_configs import ALL, NOTHING, TAKEN
from harness import Nvim
from test_config import INFO, Config, at, child, config

__all__ = ["child", "config"]


@pytest.mark.parametrize("version", ALL)
def test_equivalent_options_apply_and_the_rest_is_listed(config: Config, version: str) -> None:
    config.setup(ALL[version])
    found = config.findings
    assert found["problems"] == []
    assert {entry.partition(":")[0] for entry in found["foreign"]} == NOTHING[version]
    for path, value in TAKEN[version].items():
        assert config.get(path) == value, path
    count = len(NOTHING[version])
    text = f"codecompanion: {count} options do nothing here: :CodeCompanion problems"
    assert config.said == [(INFO, text)]
    config.for_host()
    assert config.said == [(INFO, text)]


@pytest.mark.parametrize("size", [(40, 12), (80, 24)])
@pytest.mark.parametrize("version", ALL)
def test_startup_shows_one_quiet_line(nvim_factory: Callable[..., Nvim], version: str, size: tuple[int, int]) -> None:
    nvim = nvim_factory(size=size, init=f"require('codecompanion').setup({ALL[version]})\n")
    nvim.wait_for(lambda: ":CodeCompanion problems" in nvim.screen(), "the line")
    assert not nvim.blocked()
    nvim.command("CodeCompanion problems")
    assert "do nothing" in " ".join(nvim.lines())
    assert any("strategies → interactions" in line for line in nvim.lines()) == (version != "19")


def test_the_given_table_is_not_changed(config: Config) -> None:
    config.setup(f"(function() _G.given = {ALL['17']} _G.copy = vim.deepcopy(given) return given end)()")
    config.for_host()
    # Functions are the same ones in a deep copy.
    assert config.eval("vim.deep_equal(given, copy)") is True


def test_our_own_option_name_takes_precedence(config: Config) -> None:
    config.setup(
        "{ strategies = { chat = { adapter = 'openai', roles = { user = 'a' } } },"
        " interactions = { chat = { adapter = 'anthropic' } } }"
    )
    assert config.get("interactions.chat.adapter") == "anthropic"
    assert config.get("interactions.chat.roles.user") == "a"
    assert config.findings["problems"] == []


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        ("strategies.chat.roles.llm", "interactions.chat.roles.llm"),
        ("memory.mine.files", "rules.mine.files"),
        (
            "strategies.chat.tools.cmd_runner.opts.require_approval_before",
            "interactions.chat.tools.run_command.opts.require_approval_before",
        ),
        ("adapters.mine", "adapters.http.mine"),
    ],
)
def test_a_mistake_at_an_old_place_is_reported_at_its_new_place(config: Config, path: str, ours: str) -> None:
    assert f"{ours}: got 7" in config.setup(at(path, "7")).errors


@pytest.mark.parametrize("path", ["strategies", "memory", "adapters", "strategies.chat", "memory.opts", "opts"])
@pytest.mark.parametrize("value", ["7", "'x'", "false", "{ 1 }", "function() end"])
def test_no_value_at_a_moved_place_breaks_anything(config: Config, path: str, value: str) -> None:
    config.setup(at(path, value))
    assert config.for_host()["chat"]["adapter"] == "offline"


@pytest.mark.parametrize(
    ("options", "key", "advice"),
    [
        (
            "{ interactions = { chat = { opts = { prompt_decorator = function(text) return text end } } } }",
            "interactions.chat.opts.prompt_decorator",
            "messages are sent as you write them. Remove it",
        ),
        (
            "{ interactions = { chat = { tools = { run_command = { opts = { judge_in_yolo_mode = true } } } } } }",
            "interactions.chat.tools.run_command.opts.judge_in_yolo_mode",
            "set `allowed_in_yolo_mode` = false",
        ),
        (
            "{ interactions = { chat = { tools = { opts = { auto_submit_success = false } } } } }",
            "interactions.chat.tools.opts.auto_submit_success",
            "set its `require_approval_before` = true",
        ),
        (
            "{ mcp = { servers = { mine = { cmd = { 'x' }, roots = function() return {} end } } } }",
            "mcp.servers.mine.roots",
            "limit the server with its own arguments",
        ),
        (
            "{ opts = { per_project_config = { paths = { ['~/work'] = { opts = { send_code = false } } } } } }",
            "opts.per_project_config",
            "make `opts.send_code` a function",
        ),
    ],
)
def test_an_unsupported_limit_on_sent_text_is_a_mistake(config: Config, options: str, key: str, advice: str) -> None:
    """Users may rely on it, so it must not be silently ignored; the error names the alternative."""
    (problem,) = config.setup(options).findings["problems"]
    assert problem.startswith(f"{key}: not supported: ")
    assert advice in problem
    assert config.findings["foreign"] == []


def test_unsupported_values_that_limit_nothing_are_only_listed(config: Config) -> None:
    """The defaults of codecompanion.nvim are examples."""
    config.setup("{ opts = { per_project_config = { enabled = true, files = {}, paths = {} } } }")
    assert config.findings["problems"] == []
    assert config.findings["foreign"] == ["opts.per_project_config"]


def test_an_old_name_of_the_approval_option_works(config: Config) -> None:
    """The name is `user_approval`, from older versions."""
    config.setup("{ strategies = { chat = { tools = { read_file = { opts = { user_approval = true } } } } } }")
    assert config.get("interactions.chat.tools.read_file.opts.require_approval_before") is True
    assert config.findings["foreign"] == []


@pytest.mark.parametrize("send_code", ["false", "function() return true end"])
def test_an_embedding_endpoint_gets_no_code_if_none_may_be_sent(config: Config, send_code: str) -> None:
    """Otherwise the endpoint would receive the whole project in the background."""
    embedding = "{ url = 'https://embed.example/v1', model = 'x' }"
    config.setup(f"{{ opts = {{ send_code = {send_code} }}, context = {{ embedding = {embedding} }} }}")
    assert "url" not in config.for_host()["context"]["embedding"]
    assert "context.embedding.url: an embedding endpoint receives" in config.findings["problems"][0]
