"""The configuration in a real Neovim: defaults, mistakes and their messages, and the settings sent to the host."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codecompanion import settings
from codecompanion.engine.configured import take_settings, with_adapters
from codecompanion.wire.requests import Hello
from harness import REPO, Nvim
from tests.amounts import amount

ERROR, WARN, INFO = 4, 3, 2
CM = "interactions.chat.opts.context_management"
WINDOW = "interactions.chat.opts.context_window"

_FRESH = """
for name in pairs(package.loaded) do
  if name:match("^codecompanion") then package.loaded[name] = nil end
end
_G.said = {}
vim.notify = function(text, level) table.insert(_G.said, { level, (text:gsub("\\n", " ")) }) end
_G.config = require("codecompanion.config")
"""


class Config:
    """A fresh configuration in a running Neovim; `said` has the notifications as (level, text)."""

    def __init__(self, nvim: Nvim) -> None:
        self.nvim = nvim

    def setup(self, options: str) -> Config:
        """Call `config.setup` with Lua text and read the options once, so that the check has run."""
        self.nvim.lua(f"{_FRESH} config.setup({options}); local _ = config.options")
        return self

    def get(self, path: str) -> Any:
        """Return an option by its key path."""
        return self.nvim.lua("return vim.tbl_get(config.options, unpack(vim.split(..., '.', { plain = true })))", path)

    def eval(self, code: str) -> Any:
        """Return the value of a Lua expression."""
        return self.nvim.lua(f"return {code}")

    @property
    def said(self) -> list[tuple[int, str]]:
        """The notifications so far."""
        self.nvim.settle()
        return [(level, text) for level, text in self.nvim.lua("return said")]

    @property
    def findings(self) -> dict[str, list[Any]]:
        """The findings: `problems`, `old_names`, `foreign`, `moves`."""
        found: dict[str, Any] = self.nvim.lua("return config.findings()")
        return {name: list(value) for name, value in found.items()}

    @property
    def errors(self) -> str:
        """The mistakes, one per line, after checking that at most one error was reported."""
        texts = [text for level, text in self.said if level == ERROR]
        problems = self.findings["problems"]
        assert len(texts) == min(1, len(problems)), texts
        return "\n".join(problems)

    def for_host(self) -> dict[str, Any]:
        """Return the settings for the host, converted through JSON as on the wire."""
        text = self.nvim.lua("return vim.json.encode(config.for_host())")
        decoded: dict[str, Any] = json.loads(text)
        return decoded


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nvim]:
    """Return one Neovim for all tests of this file."""
    with Nvim(tmp_path_factory.mktemp("config")) as nvim:
        yield nvim


@pytest.fixture
def config(child: Nvim) -> Config:
    """Return a new configuration."""
    return Config(child)


def at(path: str, value: str) -> str:
    """Return a Lua table with `value` at the key path."""
    for part in reversed(path.split(".")):
        value = f"{{ [{part!r}] = {value} }}"
    return value


def test_without_setup_the_defaults_apply(config: Config) -> None:
    config.nvim.lua(_FRESH)
    assert config.get("interactions.chat.adapter") is None, "one is chosen when the first chat opens"
    assert config.get(f"{CM}.editing.trigger") == 0.65
    assert config.get(f"{CM}.compaction.min_token_savings") == 10000
    assert config.said == []


def test_options_are_merged_and_lists_replaced(config: Config) -> None:
    config.setup(
        """{ interactions = { chat = { opts = { context_management = { editing = { exclude_tools = {} } } } } },
             display = { chat = { window = { opts = { number = false } } } } }"""
    )
    assert config.get(f"{CM}.editing.exclude_tools") in ([], {})
    assert config.get(f"{CM}.editing.keep_cycles") == 3
    assert config.get("display.chat.window.opts") == {
        "breakindent": True,
        "breakindentopt": "list:-1",
        "linebreak": True,
        "smoothscroll": True,
        "wrap": True,
        "number": False,
    }
    assert config.said == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            "{ display = { chat = { auto_scrol = false } } }",
            "display.chat.auto_scrol: unknown key; did you mean `auto_scroll`?",
        ),
        ("{ intractions = {} }", "intractions: unknown key; did you mean `interactions`?"),
        ("{ display = { chta = {} } }", "display.chta: unknown key; did you mean `chat`?"),
        ("{ context_management = {} }", f"context_management: unknown key here; did you mean `{CM}`?"),
        ("{ polcy = 'agent' }", "polcy: unknown key here; did you mean `interactions.chat.opts.policy`?"),
        (at("display.chat.yolo_mod", "1"), "yolo_mod: unknown key here; did you mean `interactions.chat.keymaps"),
        ("{ zzzzzz = 1 }", "zzzzzz: unknown key; the keys here are adapters, interactions"),
        ("{ 'openai' }", "1: unknown key; the keys here are adapters"),
        ("'openai'", 'setup(): got "openai"; expected a table'),
        ("{ display = 3 }", "display: got 3; expected a table"),
        (at("display.chat.auto_scroll", "'yes'"), 'display.chat.auto_scroll: got "yes"; expected boolean'),
        (
            at("interactions.chat.roles.user", "false"),
            "interactions.chat.roles.user: got false; expected string or",
        ),
        (
            at("display.chat.window.layout", "'vertcal'"),
            '"vertcal"; expected "vertical", "horizontal", "float", "tab" or',
        ),
        (at("display.chat.window.layout", "'vertcal'"), 'did you mean "vertical"?'),
        (at("display.chat.window.width", "1.5"), "display.chat.window.width: got 1.5; expected a fraction"),
        (at("display.chat.window.height", "0"), "display.chat.window.height: got 0; expected a fraction"),
        (at("interactions.chat.opts.compaction_timeout", "10"), "got 10; the minimum is 1000"),
        (
            at("interactions.chat.opts.max_provider_requests_per_turn", "0"),
            "max_provider_requests_per_turn: 0 would forbid",
        ),
        (at("interactions.chat.opts.budget", "-1"), "interactions.chat.opts.budget: got -1; the minimum is 0"),
        (at("interactions.chat.opts.on_compact", "'never'"), 'expected "auto", "submit", "ask" or "stop"'),
        (at("interactions.chat.tools.read_fil", "{}"), "did you mean `read_file`?"),
        (at("interactions.chat.tools.run_command.opts.timeout", "0"), "run_command.opts.timeout: got 0; the minimum"),
        (at("interactions.chat.keymaps.mine", "{ modes = { n = 'x' } }"), "keymaps.mine: `callback` is missing"),
        (at("interactions.chat.keymaps.sned", "{ modes = { n = 'x' } }"), "sned: unknown key; did you mean `send`?"),
        (at("interactions.chat.keymaps.send", "'<CR>'"), 'keymaps.send: got "<CR>"; expected a table or false'),
        (
            at("interactions.chat.keymaps.send.modes.n", "{ 1 }"),
            "keymaps.send.modes.n.1: got 1; expected string",
        ),
        (at("models.m.context_window", "'128kb'"), 'models.m.context_window: got "128kb"; expected a number of tokens'),
        (at("models.m.context_windw", "1"), "did you mean `context_window`?"),
        (at("rules.mine.files", "{ 'a', 3 }"), "rules.mine.files.2: got 3; expected string or table"),
        (
            at("rules.mine.files", "{ { path = 'a', parser = 'claud' } }"),
            'parser: got "claud"; expected "claude" or "none"',
        ),
        (at("rules.mine.files", "{ { pth = 'a' } }"), 'rules.mine.files.1: unknown key "pth"'),
        (at("opts.log_level", "'LOUD'"), 'opts.log_level: got "LOUD"; expected "TRACE"'),
        (at("adapters.http.opts.proxy", "'localhost:8080'"), "adapters.http.opts.proxy: expected [protocol]"),
        (at("context.enabled", "'always'"), 'context.enabled: expected true, false or "auto", got "always"'),
        (at("context.hybrid.top_k", "51"), "context.hybrid.top_k: expected a number from 1 to 50, got 51"),
        (at("context.hybrid.vectr_weight", "1"), "did you mean `vector_weight`?"),
        (at("context.hybrid.mmr.lambda", "1.5"), "context.hybrid.mmr.lambda: expected a number from 0 to 1, got 1.5"),
        (at("context.hybrid.decay.half_life_days", "0"), "half_life_days: expected a number from 1 to 365, got 0"),
        (at("context.budgets", "{ ['gpt-4o'] = -1 }"), "context.budgets: gpt-4o = -1; expected model names with"),
        (at("context.max_file_size_mb", "-1"), "max_file_size_mb: expected a number from 0 to 100, got -1"),
        (at("context.window", "'banana'"), 'context.window: got "banana"; expected a number of tokens'),
        (at("context.embedding.url", "'localhost:11434'"), "context.embedding.url: expected http://… or https://…"),
        (at("context.embedding.key", "'sk-proj-1234567890ab'"), "not the key itself"),
        (at("context.embedding.key", "'AB12CD34EF56GH78IJ90KL12'"), "not the key itself"),
        (at("completion.api_key", "'AB12CD34EF56GH78IJ90KL12'"), "not the key itself"),
        (at("context.embedding.modl", "'m'"), "did you mean `model`?"),
        (at("context.team.command", "{}"), "context.team.command: expected a program and its arguments"),
        (at("host", "'python2'"), 'host: got "python2"; expected "private" or "python3"; did you mean "python3"?'),
    ],
)
def test_a_mistake_names_its_key_path_and_the_expected_value(config: Config, options: str, expected: str) -> None:
    assert expected in config.setup(options).errors


@pytest.mark.parametrize(
    "path",
    [
        "adapters.acp",
        "adapters.opts",
        "interactions.inline.opts",
        "interactions.chat.slash_commands.opts",
        "interactions.chat.slash_commands.file.keymaps",
        "interactions.chat.tools.groups.agent",
        "interactions.chat.tools.run_command.opts.require_cmd_approval",
        "interactions.chat.keymaps.send.index",
        "display.diff",
        "display.action_palette",
        "opts.submit_delay",
        "rules.parsers",
        "rules.mine.is_preset",
    ],
)
def test_a_key_of_codecompanion_nvim_is_listed_and_not_a_mistake(config: Config, path: str) -> None:
    config.setup(at(path, "{ 1 }"))
    assert [entry.partition(":")[0] for entry in config.findings["foreign"]] == [path]
    assert config.errors == ""
    text = "1 option does nothing here: :CodeCompanion problems"
    assert config.said == [(INFO, f"codecompanion: {text}")]


def test_mistakes_are_reported_in_one_line_and_the_rest_applies(config: Config) -> None:
    config.setup(
        """{ strategies = { chat = { opts = 5 } }, interactions = { chat = { roles = { user = "You", llm = 7 } } },
             display = { diff = {}, chat = { window = { layout = "float", widht = 3 } } } }"""
    )
    first = "interactions.chat.roles.llm: got 7; expected string or function"
    summary = f"3 mistakes in setup(). First: {first}. All: :CodeCompanion problems"
    assert config.said == [(ERROR, f"codecompanion: {summary}")]
    assert [problem.partition(": ")[0] for problem in config.findings["problems"]] == [
        "interactions.chat.roles.llm",
        "interactions.chat.opts",
        "display.chat.window.widht",
    ]
    assert config.get("interactions.chat.roles.user") == "You"
    assert config.eval('config.options.interactions.chat.roles.llm({ formatted_name = "X" })') == "CodeCompanion (X)"
    assert config.get("display.chat.window.layout") == "float"
    assert config.get("display.chat.window.width") == 0.5


def test_a_single_mistake_is_reported_directly(config: Config) -> None:
    config.setup("{ displya = {} }")
    assert config.said == [(ERROR, "codecompanion: setup(): displya: unknown key; did you mean `display`?")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("0.5", 0.5),
        ("2", 2),
        ("60000", 60000),
        ("'60k'", "60k"),
        ("'85%'", "85%"),
        ("false", False),
        ("0.999", 0.999),
        ("1", 1),
    ],
)
def test_a_trigger_reaches_the_host_as_written(config: Config, given: str, expected: Any) -> None:
    """R-502: the host interprets and validates it."""
    config.setup(at(f"{CM}.compaction.trigger", given))
    assert config.errors == ""
    assert config.for_host()["chat"]["context_management"] == {"compaction": {"trigger": pytest.approx(expected)}}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("0/0", "expected a number"),
        ("math.huge", "expected a number"),
        ("{}", "expected number, string, boolean or function"),
    ],
)
def test_a_trigger_that_cannot_be_sent_is_refused_with_the_reason(config: Config, given: str, reason: str) -> None:
    """R-502: nothing is clamped (lesson 13); the default still applies."""
    config.setup(at(f"{CM}.editing.trigger", given))
    assert f"{CM}.editing.trigger: " in config.errors
    assert reason in config.errors
    assert config.get(f"{CM}.editing.trigger") == 0.65
    assert config.for_host()["chat"]["context_management"] == {}


def test_the_old_name_of_the_compaction_trigger_works_with_one_warning(config: Config) -> None:
    """R-503."""
    config.setup(at(f"{CM}.trigger", "0.7"))
    assert config.get(f"{CM}.compaction.trigger") == 0.7
    config.eval(f"config.setup({at(f'{CM}.trigger', '0.7')}) or config.options and 1")
    warnings = [text for level, text in config.said if level == WARN]
    assert len(warnings) == 1
    assert f"{CM}.trigger is the old name of {CM}.compaction.trigger" in warnings[0]
    assert config.errors == ""


def test_the_new_name_wins_over_the_old_one(config: Config) -> None:
    config.setup(at(CM, "{ trigger = 0.7, compaction = { trigger = 0.9 } }"))
    assert config.get(f"{CM}.compaction.trigger") == 0.9
    assert "both are set, and the new one is used" in config.findings["old_names"][0]


def test_the_old_name_with_a_bad_value_is_an_error_at_the_new_one(config: Config) -> None:
    assert f"{CM}.compaction.trigger: got " in config.setup(at(f"{CM}.trigger", "{}")).errors


def test_the_thresholds_also_accept_the_names_of_kodacodes_document(config: Config) -> None:
    """R-305: they reach the host unchanged; the policy interprets them and checks their order."""
    config.setup(at(CM, "{ compaction_threshold = '70%', compaction_target_threshold = 0.5 }"))
    assert config.errors == ""
    assert config.for_host()["chat"]["context_management"] == {
        "compaction_threshold": "70%",
        "compaction_target_threshold": 0.5,
    }
    errors = config.setup(at(CM, "{ compaction_treshold = 0.5, compaction_target_threshold = false }")).errors
    assert "did you mean `compaction_threshold`?" in errors
    assert "compaction_target_threshold: got false; expected number or string" in errors


def test_a_threshold_beside_a_trigger_function_is_a_mistake(config: Config) -> None:
    """A function wins over the threshold, and only the editor knows that it is a function."""
    config.setup(at(CM, "{ compaction_threshold = 0.7, compaction = { trigger = function() return 0.8 end } }"))
    ask = 'config.evaluate_overrides({ adapter = "offline", model = "", window = 1000 })'
    assert config.eval(ask) == {"compaction": {"trigger": 0.8}}
    assert f"{CM}.compaction_threshold: `{CM}.compaction.trigger` is a function and takes precedence" in config.errors


def test_only_options_set_by_the_user_reach_the_policy(config: Config) -> None:
    """Policies have their own defaults; functions are evaluated per chat."""
    config.setup(
        at(
            CM,
            """{ enabled = function() return false end,
                 editing = { trigger = function() return 0.4 end, exclude_tools = {} },
                 compaction = { min_token_savings = 5 } }""",
        )
    )
    assert config.for_host()["chat"]["context_management"] == {
        "editing": {"exclude_tools": []},
        "compaction": {"min_token_savings": 5},
    }


def test_context_management_functions_are_evaluated_per_chat(config: Config) -> None:
    """R-502, R-503."""
    config.setup(
        at(
            CM,
            """{ enabled = function(adapter) return adapter.name == "openai" end,
                 editing = { trigger = function(ctx) return ctx.window > 100000 and 50000 or "40%" end },
                 compaction = { trigger = function(ctx) return ctx.model ~= "m" and 0.9 end } }""",
        )
    )
    ask = 'config.evaluate_overrides({ adapter = "openai", model = "%s", window = %d })'
    assert config.eval(ask % ("m", 128000)) == {
        "enabled": True,
        "editing": {"trigger": 50000},
        "compaction": {"trigger": False},
    }
    assert config.eval(ask % ("x", 8000)) == {
        "enabled": True,
        "editing": {"trigger": "40%"},
        "compaction": {"trigger": 0.9},
    }
    assert config.said == []


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("function() error('no idea') end", "editing.trigger: the function failed: "),
        ("function() return 0/0 end", "editing.trigger: in the function's result: got "),
        (
            "function() return {} end",
            "editing.trigger: the function returned table; expected number or string or boolean",
        ),
        ("function() end", "editing.trigger: the function returned nil"),
    ],
)
def test_a_failing_trigger_function_leaves_the_policys_value(config: Config, function: str, said: str) -> None:
    config.setup(at(f"{CM}.editing.trigger", function))
    assert config.eval('config.evaluate_overrides({ adapter = "offline", model = "", window = 1000 })') in ({}, [])
    assert said in config.errors


def test_an_unknown_adapter_is_an_error_at_setup(config: Config) -> None:
    """R-504."""
    config.setup(at("interactions.chat.adapter", "'opnai'"))
    assert 'interactions.chat.adapter: there is no adapter "opnai"; did you mean "openai"?' in config.errors
    assert config.for_host()["chat"]["adapter"] == "offline"


def test_an_unknown_summary_adapter_is_an_error_at_setup(config: Config) -> None:
    """R-504."""
    config.setup(at(f"{CM}.compaction.adapter", "{ name = 'haiku', model = 'x' }"))
    assert f'{CM}.compaction.adapter: there is no adapter "haiku"' in config.errors
    assert config.for_host()["chat"]["context_management"] == {}


def test_a_summary_adapter_is_passed_on_with_its_model(config: Config) -> None:
    config.setup(at(f"{CM}.compaction.adapter", "{ name = 'openai', model = 'gpt-4.1-mini' }"))
    assert config.for_host()["chat"]["context_management"]["compaction"]["adapter"] == {
        "name": "openai",
        "model": "gpt-4.1-mini",
    }


def test_an_unsupported_adapter_of_codecompanion_nvim_is_named_with_the_supported_ones(config: Config) -> None:
    errors = config.setup(at("interactions.chat.adapter", "'gemini_cli'")).errors
    assert 'interactions.chat.adapter: there is no adapter "gemini_cli"; the adapters are anthropic, ' in errors
    assert config.setup(at("interactions.chat.adapter", "'deepseek'")).errors == ""


def test_chat_adapter_and_model_may_be_given_together(config: Config) -> None:
    chat = config.setup(at("interactions.chat.adapter", "{ name = 'openai', model = 'gpt-5' }")).for_host()["chat"]
    assert (chat["adapter"], chat["model"]) == ("openai", "gpt-5")


def test_keys_can_be_changed_added_and_disabled(config: Config) -> None:
    config.setup(
        at(
            "interactions.chat.keymaps",
            "{ send = { modes = { n = '<C-CR>' } }, stop = false,"
            " mine = { modes = { n = 'gz' }, callback = function() end, description = 'Mine' } }",
        )
    )
    assert config.errors == ""
    assert config.get("interactions.chat.keymaps.send.modes") == {"n": "<C-CR>"}
    assert config.get("interactions.chat.keymaps.send.description") == "Send the message"
    assert config.get("interactions.chat.keymaps.stop") is False
    assert config.get("interactions.chat.keymaps.mine.description") == "Mine"


def test_tools_and_rule_groups_can_be_disabled(config: Config) -> None:
    told = config.setup(
        "{ interactions = { chat = { tools = { run_command = false, memory = { enabled = false } } } },"
        " rules = { default = false } }"
    ).for_host()
    assert config.errors == ""
    loaded = settings.load(told)
    assert not loaded.tools.entries["run_command"].enabled
    assert not loaded.tools.entries["memory"].enabled
    assert loaded.tools.entries["read_file"].enabled
    assert loaded.rules.groups == {}


def test_allowed_prefixes_and_guarded_files_reach_the_host(config: Config) -> None:
    config.setup(
        "{ interactions = { chat = { tools = { opts = { guarded_files = { 'deploy/', '!Makefile' } },"
        " run_command = { opts = { allowed_prefixes = { 'git status', 'make test' },"
        " keep_variables = { 'PG*' } } } } } } }"
    )
    assert config.errors == ""
    loaded = settings.load(config.for_host()).tools
    assert loaded.guarded_files == ("deploy/", "!Makefile")
    assert loaded.entries["run_command"].allowed_prefixes == ("git status", "make test")
    assert loaded.entries["run_command"].keep_variables == ("PG*",)
    assert loaded.entries["read_file"].allowed_prefixes == ()


def test_codecompanions_name_of_the_edit_tool_is_accepted(config: Config) -> None:
    told = config.setup(at("interactions.chat.tools.insert_edit_into_file", "false")).for_host()
    assert config.errors == ""
    assert told["tools"]["entries"]["insert_edit"] == {"enabled": False}
    config.setup(at("interactions.chat.tools", "{ insert_edit = { enabled = true }, insert_edit_into_file = false }"))
    assert "insert_edit_into_file: is another name for `insert_edit`" in config.errors
    assert config.get("interactions.chat.tools.insert_edit.enabled") is True


def test_rule_groups_are_sent_with_their_parsers_except_disabled_ones(config: Config) -> None:
    """R-549."""
    told = config.setup(
        """{ rules = {
          mine = { description = "Mine", parser = "claude", files = { "A.md", { path = "b/*.md", parser = "none" } } },
          off = { files = { "x" }, enabled = function() return false end },
          broken = { files = { "x" }, enabled = function() error("boom") end },
          opts = { chat = { autoload = function() return { "default", "mine" } end } },
        } }"""
    ).for_host()
    assert told["rules"]["groups"]["mine"] == {
        "description": "Mine",
        "files": [{"path": "A.md", "parser": "claude"}, {"path": "b/*.md", "parser": "none"}],
    }
    assert sorted(told["rules"]["groups"]) == ["default", "mine"]
    assert told["rules"]["autoload"] == ["default", "mine"]
    assert "rules.broken.enabled: the function failed: " in config.errors
    assert "boom" in config.errors


def test_the_system_prompt_function_can_extend_the_built_in_one(config: Config) -> None:
    told = config.setup(
        at(
            "interactions.chat.opts.system_prompt",
            "function(ctx) return ctx.default_system_prompt .. ' Folder: ' .. ctx.cwd end",
        )
    ).for_host()
    prompt = settings.load(told).chat.full_system_prompt("You help.")
    assert prompt.startswith("You help. Folder: /")


def test_another_language_is_requested_after_the_built_in_prompt(config: Config) -> None:
    chat = settings.load(config.setup(at("opts.language", "'German'")).for_host()).chat
    assert chat.full_system_prompt("You help.") == "You help.\n\nWrite everything that is not code in German."


@pytest.mark.parametrize(
    ("locale", "configured", "told"),
    [
        ({"LC_ALL": "de_DE.UTF-8", "LANG": "fr_FR"}, "", "de_DE"),
        ({"LC_ALL": "", "LC_MESSAGES": "sr_RS@latin", "LANG": "fr_FR"}, "", "sr_RS"),
        ({"LC_ALL": "", "LC_MESSAGES": "", "LANG": "C.UTF-8"}, "", ""),
        ({"LC_ALL": "", "LC_MESSAGES": "", "LANG": ""}, "", ""),
        ({"LC_ALL": "de_DE.UTF-8"}, "English", "English"),
    ],
)
def test_the_language_is_the_configured_one_or_the_locale(
    config: Config, locale: dict[str, str], configured: str, told: str
) -> None:
    config.setup(at("opts.language", f"'{configured}'") if configured else "{}")
    for name, value in locale.items():
        config.nvim.lua("local name, value = ...; vim.env[name] = value", name, value)
    assert config.nvim.lua("return config.language()") == told


def test_a_failing_system_prompt_function_leaves_the_built_in_one(config: Config) -> None:
    told = config.setup(at("interactions.chat.opts.system_prompt", "function() return nil .. '' end")).for_host()
    assert told["chat"]["system_prompt"] is None
    assert "interactions.chat.opts.system_prompt: the function failed" in config.errors


def test_the_python_defaults_are_those_of_the_schema(config: Config) -> None:
    """A difference here is fixed with `make doc`."""
    config.nvim.lua(_FRESH)
    assert {**config.for_host(), "adapters": settings.defaults()["adapters"]} == settings.defaults()


def test_the_schema_and_the_default_policy_agree(config: Config) -> None:
    """R-503: the Lua defaults only document the policy's behaviour."""
    policy = tomllib.loads((REPO / "python/codecompanion/context/policies/codecompanion.toml").read_text())
    stages = {stage["id"]: stage for stage in policy["stage"]}
    tiers = [tier for stage in policy["stage"] for tier in stage.get("tier", [stage])]
    steps = {step["use"]: step for tier in reversed(tiers) for step in tier["step"]}
    config.nvim.lua(_FRESH)
    defaults = config.get(CM)
    assert defaults == {
        "enabled": True,
        "strict": False,
        "editing": {
            "trigger": stages["editing"]["trigger"]["at"],
            "exclude_tools": steps["clear_tool_results"]["exclude_tools"],
            "keep_cycles": steps["clear_tool_results"]["older_than"]["count"],
        },
        "compaction": {
            "trigger": stages["compaction"]["trigger"]["at"],
            "min_token_savings": steps["require_savings"]["automatic"],
            "fallback_to_chat_adapter": bool(tiers[-1]["on_fail"]),
        },
        "sessions": [],  # KodaCode's; nothing is set there
    }


def test_every_option_has_a_description_and_a_known_type(config: Config) -> None:
    config.nvim.lua(_FRESH)
    wrong = config.nvim.lua(
        """
        local wrong, known = {}, { "string", "boolean", "number", "integer", "function", "table", "list" }
        local function look(node, path)
          for _, field in ipairs(vim.list_extend(vim.list_extend({}, node.fields or {}), { node.values })) do
            local here = path .. "." .. tostring(field.name)
            if not field.name or (field.description or "") == "" then table.insert(wrong, here) end
            for _, kind in ipairs(type(field.type) == "table" and field.type or { field.type }) do
              if not vim.list_contains(known, kind) then table.insert(wrong, here .. " " .. kind) end
            end
            if not field.fields and field.type == nil then table.insert(wrong, here .. " has no type") end
            if not field.fields and field.default == nil and not field.optional then table.insert(wrong, here) end
            look(field, here)
          end
        end
        look(require("codecompanion.config.schema"), "")
        return wrong
        """
    )
    assert wrong in ([], {})


def test_every_default_passes_the_check(config: Config) -> None:
    """A default printed in the help file can be passed back."""
    config.nvim.lua(_FRESH)
    config.eval("config.setup(vim.deepcopy(config.options)) or config.options and 1")
    assert config.errors == ""


def test_mistakes_are_reported_after_startup_even_if_nothing_was_used(nvim_factory: Callable[..., Nvim]) -> None:
    nvim = nvim_factory(
        init="""_G.said = {}
        vim.notify = function(text, level) table.insert(_G.said, (text:gsub("\\n", " "))) end
        require("codecompanion").setup({ displya = {} })
        _G.loaded_by_setup = package.loaded["codecompanion.config"] ~= nil"""
    )
    assert nvim.lua("return loaded_by_setup") is False
    nvim.wait_lua("return #said > 0")
    assert "displya: unknown key; did you mean `display`?" in nvim.lua("return said[1]")
    assert nvim.lua("return #said") == 1


def test_setup_after_startup_replaces_the_earlier_options(config: Config) -> None:
    config.setup("{ host = 'python3', models = { m = { context_window = 5 } } }")
    config.eval("config.setup({ host = 'private' }) or config.options and 1")
    assert config.get("host") == "private"
    assert config.get("models") in ({}, [])


def test_problems_are_listed_for_checkhealth(config: Config) -> None:
    config.setup(at("interactions.chat.opts.context_management", "{ trigger = 0.7, enbled = true }"))
    found = config.findings
    assert "enbled: unknown key" in found["problems"][0]
    assert "old name" in found["old_names"][0]


def test_a_compatible_codecompanion_nvim_configuration_causes_no_message(config: Config) -> None:
    config.setup(
        """{
          adapters = { http = {
            openai = function()
              return require("codecompanion.adapters").extend("openai", {
                env = { api_key = "cmd:op read op://personal/OpenAI --no-newline" },
                schema = { model = { default = "gpt-4.1" }, temperature = { default = 0.2 } },
              })
            end,
            opts = { proxy = "socks5://127.0.0.1:9999" },
          } },
          interactions = { chat = {
            adapter = "openai",
            roles = { llm = function(a) return a.formatted_name end, user = "You" },
            keymaps = { send = { modes = { n = "<C-s>", i = "<C-s>" }, opts = {} }, close = false },
            opts = { context_management = { compaction = { adapter = "openai", trigger = "80%" } } },
          } },
          display = { chat = { window = { layout = "float", width = 0.8 }, start_in_insert_mode = true } },
          rules = { opts = { chat = { autoload = { "default" } } } },
          opts = { log_level = "DEBUG" },
        }"""
    )
    assert config.eval("config.adapters()")["entries"]["openai"]["schema"] == {
        "model": {"default": "gpt-4.1"},
        "temperature": {"default": 0.2},
    }
    assert config.said == []


def test_setup_does_not_change_the_users_table(config: Config) -> None:
    config.nvim.lua(
        f"""{_FRESH}
        _G.given = {at(f"{CM}", "{ trigger = 0.7, editing = { trigger = '50%' } }")}
        _G.copy = vim.deepcopy(given)
        config.setup(given)
        local _ = config.for_host()"""
    )
    assert config.eval("vim.deep_equal(given, copy)") is True


def test_paths_in_the_workspace_option_are_expanded(config: Config, tmp_path: Path) -> None:
    config.nvim.lua("vim.env.CC_TEST_ROOT = ...", str(tmp_path))
    told = config.setup(at("workspace.root", "'$CC_TEST_ROOT/x/'")).for_host()
    assert told["workspace"]["root"] == f"{tmp_path}/x"


@pytest.mark.slow("every kind of value at every key")
def test_no_value_at_any_key_breaks_the_check_or_the_host_settings(config: Config) -> None:
    """Every key path is given several kinds of values (all of them in `make fuzz`); each is accepted or reported.

    The settings stay loadable.
    """
    outcomes = config.nvim.lua(
        _FRESH
        + """
        local step = ...
        local schema = require("codecompanion.config.schema")
        local junk = { 0, -1, 0.5, 1e300, true, false, "", "x", "${y}", {}, { 1, "a", {} }, { x = { y = 1 } },
          function() end, function() error({}) end, vim.NIL, coroutine.create(function() end) }
        local paths = {}
        local function collect(node, path)
          for _, field in ipairs(vim.list_extend(vim.list_extend({}, node.fields or {}), { node.values })) do
            local here = vim.list_extend(vim.list_extend({}, path), { (field.name:gsub("[<>]", "")) })
            paths[#paths + 1] = here
            collect(field, here)
          end
        end
        collect(schema, {})
        local broken, told = {}, {}
        for number, path in ipairs(paths) do
          for index = 1 + number % step, #junk, step do
            local value = junk[index]
            local options = value
            for position = #path, 1, -1 do
              options = { [path[position]] = options }
            end
            local ok, answer = pcall(function()
              config.setup(options)
              local _ = config.options.display.chat.window.layout
              config.evaluate_overrides({ adapter = "openai", model = "m", window = 1000 })
              config.secrets()
              local adapters = config.adapters()
              return vim.json.encode({
                settings = config.for_host(), adapters = adapters.entries, proxy = adapters.proxy,
              })
            end)
            if not ok then
              broken[#broken + 1] = table.concat(path, ".") .. " = " .. index .. ": " .. tostring(answer)
            else
              told[answer] = table.concat(path, ".") .. " = " .. index
            end
          end
        end
        return { broken = broken, told = told, paths = #paths }
        """,
        amount(4, 3, 1),
    )
    assert outcomes["broken"] in ([], {})
    assert outcomes["paths"] > 150
    assert len(outcomes["told"]) > 30
    for text, origin in outcomes["told"].items():
        request = Hello(**json.loads(text), data_dir="", cache_dir="", log_path="", nvim="")
        _, _, mistakes = take_settings(with_adapters(request, {})[0])
        key = origin.partition(" = ")[0]
        assert all(mistake.startswith(f"{key}: ") for mistake in mistakes), f"{origin}: {mistakes}"


@pytest.mark.parametrize(
    ("given", "expected"),
    [('"4k"', 4_000), ('"128k"', 128_000), ('"16K"', 16_000), ('"32768"', 32_768), ("32768", 32_768)],
)
def test_one_window_for_every_model_is_a_number_or_thousands(config: Config, given: str, expected: int) -> None:
    """R-102, R-147: 128k is 128,000; a bare number is that number."""
    config.setup(at(WINDOW, given))
    assert config.errors == ""
    assert config.for_host()["chat"]["context_window"] == expected


@pytest.mark.parametrize("given", ['""', '"banana"', '"1.5k"', "0", "-1"])
def test_an_invalid_window_is_refused(config: Config, given: str) -> None:
    """R-102: unlike the original, an invalid window is reported (lesson 13), and the models keep their own windows."""
    config.setup(at(WINDOW, given))
    assert f"{WINDOW}: got {given}; expected a number of tokens, such as 16000" in config.errors
    assert config.for_host()["chat"]["context_window"] == 0


def test_by_default_every_model_has_its_own_window(config: Config) -> None:
    """R-103: there is no default window, such as 16k."""
    config.setup("{}")
    assert config.get(WINDOW) is None
    assert config.for_host()["chat"]["context_window"] == 0
