"""Mistakes in `setup()` as the user sees them: one short line, a float with all of them, and a host that answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Nvim, lua_string
from real_chat import RealChat, init_lua

NAMES = "abcdefghijklmnopqrstuvwxyz"
WALL = json.dumps({f"nonsense_{letter}": {"x" * 50: letter} for letter in NAMES})
SIZES = [(40, 12), (80, 24), (200, 50)]
PROBLEMS = ":CodeCompanion problems"


def setup(options: str) -> str:
    """Return an init file that calls `setup()` with a Lua table."""
    return f"require('codecompanion').setup({options})\n"


def last_line(nvim: Nvim) -> str:
    """Return the text on the command line."""
    return nvim.screen().split("\n")[-1]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("notify", ["", "vim.o.cmdheight = 1; vim.o.showcmd = false\n"])
def test_many_mistakes_are_one_line_that_fits(
    nvim_factory: Callable[..., Nvim], size: tuple[int, int], notify: str
) -> None:
    nvim = nvim_factory(size=size, init=notify + setup(f"vim.json.decode({lua_string(WALL)})"))
    nvim.wait_for(lambda: PROBLEMS in nvim.screen(), PROBLEMS)
    assert not nvim.blocked()
    assert last_line(nvim).rstrip().endswith(PROBLEMS)
    assert len([line for line in nvim.messages().split("\n") if line]) == 1
    if size[0] >= 80:
        assert "26 mistakes in setup()" in nvim.messages()
    nvim.command("CodeCompanion problems")
    screen = nvim.wait_screen(r"26 mistakes in setup\(\)")
    assert "nonsense_a: unknown key" in screen
    assert not nvim.blocked()
    nvim.feed("q")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 1


@pytest.mark.parametrize("size", SIZES)
def test_a_single_long_mistake_is_shortened_to_a_line_that_fits(
    nvim_factory: Callable[..., Nvim], size: tuple[int, int]
) -> None:
    nvim = nvim_factory(size=size, init=setup("{ ['" + "x" * 300 + "'] = 1 }"))
    nvim.wait_for(lambda: PROBLEMS in nvim.screen(), PROBLEMS)
    assert not nvim.blocked()


@pytest.mark.parametrize(
    ("options", "columns", "message"),
    [
        ("{ displya = {} }", 80, "setup(): displya: unknown key; did you mean `display`?"),
        (
            "{ display = { chat = { window = { width = 'wide' } } } }",
            80,
            'display.chat.window.width: got "wide"; expected number or function',
        ),
        (
            "{ interactions = { chat = { adapter = 'antropic' } } }",
            80,
            'interactions.chat.adapter: there is no adapter "antropic"',
        ),
        (
            "{ adapters = { http = { mine = { extends = 'openai', env = { api_key = 'sk-swift-1234' } } } } }",
            90,
            "env.api_key: expected an environment variable, not the key itself",
        ),
        (
            "{ completion = { debounce = '1' }, displya = {} }",
            80,
            "2 mistakes, first completion.debounce: :CodeCompanion problems",
        ),
        (
            "{ display = { chat = { window = { width = 'wide' } } } }",
            60,
            'display.chat.window.width: got "wide"',
        ),
        ("{ completion = { debounce = '1' }, displya = {} }", 60, "2 mistakes in setup(): :CodeCompanion problems"),
    ],
)
def test_the_message_names_the_first_wrong_option_if_it_fits(
    nvim_factory: Callable[..., Nvim], options: str, columns: int, message: str
) -> None:
    nvim = nvim_factory(size=(columns, 24), init="vim.o.showcmd = true; vim.o.ruler = true\n" + setup(options))
    nvim.wait_for(lambda: last_line(nvim).strip() == message, message)


def test_the_list_shows_the_value_used_instead(nvim_factory: Callable[..., Nvim]) -> None:
    options = "{ display = { chat = { window = { width = 'wide' } } }, interactions = { chat = { adapter = 'x' } } }"
    nvim = nvim_factory(size=(140, 24), init=setup(options))
    nvim.command("CodeCompanion problems")
    screen = nvim.wait_screen("2 mistakes")
    assert 'width: got "wide"; expected number or function (used instead: 0.5)' in screen
    assert "(used instead: offline, without a model)" in screen


def test_an_unknown_adapter_is_reported_in_the_chat_before_anything_is_sent(
    nvim_factory: Callable[..., Nvim], tmp_path: Path
) -> None:
    """The report names the closest adapter and the one used instead; it is listed once among the problems."""
    wrong = {"interactions": {"chat": {"adapter": "lopp"}}}
    nvim = nvim_factory(root=tmp_path, size=(120, 24), init=init_lua("http://127.0.0.1:1", wrong))
    chat = RealChat(nvim, tmp_path)
    chat.open()
    nvim.wait_screen(r'there is no adapter "lopp"; did you mean "loop"\? New chats use offline, without a model\.')
    assert len(nvim.lua("return require('codecompanion.config').findings().problems")) == 1


def test_a_late_setup_reports_the_same(nvim_factory: Callable[..., Nvim]) -> None:
    nvim = nvim_factory(size=(70, 15))
    nvim.command("lua require('codecompanion').setup({ a = 1, b = 2 })")
    nvim.wait_screen(r"2 mistakes in setup\(\), first a: :CodeCompanion problems")
    assert not nvim.blocked()
    nvim.command("lua require('codecompanion').setup({})")
    nvim.command("CodeCompanion problems")
    nvim.wait_screen("no mistakes in the configuration")


@pytest.mark.parametrize("given", ["'text'", "7", "true", "function() end", "{ 1, 2, { 3 } }", "vim.NIL"])
def test_setup_accepts_anything(nvim_factory: Callable[..., Nvim], given: str) -> None:
    nvim = nvim_factory(init=setup(given))
    nvim.wait_for(lambda: "codecompanion: setup" in nvim.messages() or PROBLEMS in nvim.messages(), "a message")
    assert not nvim.blocked()


def test_checkhealth_lists_everything(nvim_factory: Callable[..., Nvim]) -> None:
    options = "{ displya = {}, extensions = {}, strategies = { chat = { adapter = 'offline' } } }"
    nvim = nvim_factory(init=setup(options), size=(120, 60))
    nvim.command("checkhealth codecompanion")
    nvim.wait_for(lambda: any("displya: unknown key" in line for line in nvim.lines()), "the mistake")
    text = "\n".join(nvim.lines())
    assert "Options that do nothing here" in text
    assert "- extensions" in text
    assert "- strategies → interactions" in text


POLICIES = {
    "mine": {"extends": "cowork", "description": "Mine."},
    "no stages": {"extends": "codecompanion", "stage": ["x"]},
    "step": {"extends": "codecompanion", "stage": [{"id": "a", "step": {"use": "clear_tool_results"}}]},
    "tier": {"extends": "codecompanion", "stage": [{"id": "a", "tier": {"id": "b"}}]},
}


def test_invalid_policies_leave_the_host_the_chats_and_other_policies_alone(
    nvim_factory: Callable[..., Nvim], tmp_path: Any
) -> None:
    """K1: the host's findings are also in `:CodeCompanion problems`."""
    opts = {"policy": "mine", "policies": POLICIES}
    init = init_lua("http://127.0.0.1:9/v1", {"interactions": {"chat": {"opts": opts}}})
    nvim = nvim_factory(root=tmp_path, init=init, size=(150, 50))
    chat = RealChat(nvim, tmp_path)
    chat.open()
    nvim.wait_screen("policies.step.stage")
    assert "Internal error" not in nvim.screen()
    assert nvim.messages() == ""
    nvim.command("CodeCompanion problems")
    screen = nvim.wait_screen(r"3 mistakes in setup\(\): these options are ignored")
    assert "policies.no stages.stage[1]: got 'x'; expected a stage" in screen
    assert "policies.step.stage[1].step: got a table; expected a list of steps" in screen
    assert "policies.tier.stage[1].tier: got a table; expected a list of tiers" in screen
    nvim.feed("q")
    meter = nvim.lua("return vim.b.codecompanion_chat.meter")
    assert round(100 * meter["compact_at"] / meter["window"]) == 90, "cowork's, which `mine` extends"


UNSENDABLE = [
    ("{ extends = 'cowork', stage = { 'x', id = 'y' } }", "named keys are mixed"),
    ("{ extends = 'cowork', [1] = 'x' }", "got a list"),
    ("{ extends = 'cowork', stage = { [1] = {}, [5] = {} } }", "named keys are mixed"),
    ("{ extends = 'cowork', resume = function() end }", "got a function; expected a plain value in `resume`"),
    ("{ extends = 'cowork', default_window = 0/0 }", "expected a number in `default_window`"),
    ("{ extends = 'cowork', description = '\\255' }", "it is not UTF-8 text in `description`"),
    ("(function() local t = { extends = 'cowork' } t.stage = t return t end)()", "it is nested too deeply"),
]


def test_an_unsendable_policy_is_left_out_alone(nvim_factory: Callable[..., Nvim]) -> None:
    wrong = ", ".join(f"p{number} = {table}" for number, (table, _) in enumerate(UNSENDABLE))
    policies = f"{{ mine = {{ extends = 'cowork' }}, {wrong} }}"
    nvim = nvim_factory(init=setup(f"{{ interactions = {{ chat = {{ opts = {{ policies = {policies} }} }} }} }}"))
    problems = nvim.lua("return require('codecompanion.config').findings().problems")
    assert len(problems) == len(UNSENDABLE)
    for (_, said), problem in zip(UNSENDABLE, problems, strict=True):
        assert problem.startswith("interactions.chat.opts.policies.p")
        assert said in problem
    told = json.loads(nvim.lua("return vim.json.encode(require('codecompanion.config').for_host())"))
    assert list(told["chat"]["policies"]) == ["mine"]


def test_a_choice_invalid_for_one_adapter_applies_to_the_others(nvim_factory: Callable[..., Nvim]) -> None:
    policy = "{ default = 'cowork', openai = 7, anthropic = 'kodacode' }"
    nvim = nvim_factory(init=setup(f"{{ interactions = {{ chat = {{ opts = {{ policy = {policy} }} }} }} }}"))
    told = json.loads(nvim.lua("return vim.json.encode(require('codecompanion.config').for_host())"))
    assert (told["chat"]["policy"], told["chat"]["adapter_policies"]) == ("cowork", {"anthropic": "kodacode"})
    assert nvim.lua("return require('codecompanion.config').findings().problems") == [
        "interactions.chat.opts.policy.openai: got 7; expected string"
    ]


def test_the_hosts_findings_about_adapters_are_reported_before_a_chat(
    nvim_factory: Callable[..., Nvim], tmp_path: Any
) -> None:
    """The host interprets an entry: `:CodeCompanion problems` and `:checkhealth` ask it, and a chat shows findings."""
    adapters = {"http": {"openai": {"opts": {"timeuot": 1}, "url": "localhost"}}}
    init = init_lua("http://127.0.0.1:9/v1", {"adapters": adapters, "displya": {}})
    nvim = nvim_factory(root=tmp_path, init=init, size=(150, 50))
    nvim.wait_screen("displya: unknown key")
    nvim.command("CodeCompanion problems")
    assert not nvim.blocked()
    screen = nvim.wait_screen(r"3 mistakes in setup\(\): these options are ignored")
    assert "adapters.http.openai.opts.timeuot: unknown key; did you mean `timeout`?" in screen
    assert 'adapters.http.openai.url: got "localhost"; expected http://… or https://…' in screen
    nvim.feed("q")
    nvim.command("checkhealth codecompanion")
    nvim.wait_for(lambda: any("openai.opts.timeuot: unknown key" in line for line in nvim.lines()), "the mistake")
    chat = RealChat(nvim, tmp_path)
    chat.open()
    nvim.wait_screen("! adapters.http.openai.opts.timeuot: unknown key")
