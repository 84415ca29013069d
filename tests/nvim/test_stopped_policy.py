"""An invalid policy option in the user interface: header line, notice, `:checkhealth`, `/policy` (R-347, R-350)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Nvim
from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

Factory = Callable[..., Nvim]


def opened_with(factory: Factory, root: Path, server: ChatServerThread, opts: dict[str, Any], **more: Any) -> RealChat:
    options = {"interactions": {"chat": {"opts": {"policy": "kodacode", **opts}}}, **more}
    return start_chat(factory, root, server, options=options, size=(120, 30))


@pytest.mark.parametrize(
    ("opts", "key"),
    [
        ({"context_management": {"sessions": {"compaction_threshold": 5.5}}}, "sessions.compaction_threshold"),
        ({"context_management": {"sessions": {"response_style": "loud"}}}, "sessions.response_style"),
        ({"response_style": "loud"}, "response_style"),
        ({"context_packet": {"enabled_sections": ["gti"]}}, "context_packet.enabled_sections.1"),
    ],
)
def test_header_chat_and_checkhealth_name_the_option_that_stops_the_policy(
    nvim_factory: Factory, tmp_path: Path, opts: dict[str, Any], key: str
) -> None:
    with ChatServerThread([reply("ok")], key=KEY) as server:
        chat = opened_with(nvim_factory, tmp_path, server, opts)
        chat.nvim.wait_screen(f"policy kodacode stopped: {key} · test-model · ~")
        chat.nvim.wait_screen("codecompanion is used instead")
        chat.say("hello")
        assert "kodacode stopped" in chat.nvim.screen()
        assert "Style: be concise" not in str(server.requests[-1].json["messages"][0])
        (problem,) = chat.nvim.lua("return require('codecompanion.config').findings().problems")
        assert f"{key}: " in problem
        assert problem.endswith("Policy kodacode is stopped; codecompanion is used instead.")
        assert problem in chat.health()


def test_the_header_of_the_input_shows_it_if_no_bar_of_the_chat_does(nvim_factory: Factory, tmp_path: Path) -> None:
    with ChatServerThread([reply("ok")], key=KEY) as server:
        wrong = {"context_management": {"compaction_threshold": 5.5}}
        chat = opened_with(nvim_factory, tmp_path, server, wrong, display={"chat": {"winbar": "never"}})
        chat.nvim.lua("vim.o.laststatus = 0")
        chat.nvim.wait_screen("kodacode stopped   ctx~ ")


def test_choosing_another_policy_ends_the_warning_and_the_stopped_one_gives_the_reason(
    nvim_factory: Factory, tmp_path: Path
) -> None:
    with ChatServerThread([reply("ok")], key=KEY) as server:
        chat = opened_with(nvim_factory, tmp_path, server, {"context_management": {"compaction_threshold": 5.5}})
        chat.nvim.wait_screen("policy kodacode stopped")
        chat.send("/policy cowork")
        chat.nvim.wait_for(lambda: "policy kodacode stopped" not in chat.nvim.screen(), "the warning to go")
        chat.send("/policy kodacode")
        chat.nvim.wait_screen(r"/policy kodacode: the policy is stopped")


def test_a_narrow_window_still_shows_the_stopped_policy(nvim_factory: Factory, tmp_path: Path) -> None:
    with ChatServerThread([reply("ok")], key=KEY) as server:
        chat = opened_with(nvim_factory, tmp_path, server, {"context_management": {"compaction_threshold": 5.5}})
        chat.nvim.wait_screen("policy kodacode stopped")
        chat.nvim.request("nvim_ui_try_resize", 40, 20)
        chat.nvim.wait_screen(r"^ kodacode stopped · .*%")


def test_a_wrong_name_below_sessions_is_reported_with_its_full_path(nvim_factory: Factory, tmp_path: Path) -> None:
    """It stops nothing, because an unknown name is not a value of the policy."""
    with ChatServerThread([reply("ok")], key=KEY) as server:
        chat = opened_with(nvim_factory, tmp_path, server, {"context_management": {"sessions": {"threshold": 0.5}}})
        chat.wait_ready()
        (problem,) = chat.nvim.lua("return require('codecompanion.config').findings().problems")
        assert problem.startswith("interactions.chat.opts.context_management.sessions.threshold: unknown key")
        assert "stopped" not in chat.nvim.screen()


def test_the_style_below_sessions_is_used(nvim_factory: Factory, tmp_path: Path) -> None:
    """R-347: `sessions = { response_style = … }`, as KodaCode's document writes it."""
    sent = []
    for style in ("terse", "default"):
        with ChatServerThread([reply("ok")], key=KEY) as server:
            opts = {"context_management": {"sessions": {"response_style": style}}}
            root = tmp_path / style
            root.mkdir()
            opened_with(nvim_factory, root, server, opts).say("hello")
            sent.append(server.requests[-1].json["messages"][0]["content"])
    assert len(sent[0]) > len(sent[1])


@pytest.mark.parametrize(
    ("answer", "said"), [("'no'", "'no' is not a trigger"), ("nil", "the function returned nil"), ("-1", "is negative")]
)
def test_an_invalid_function_result_stops_the_policy_and_checkhealth_names_the_running_one(
    nvim_factory: Factory, tmp_path: Path, answer: str, said: str
) -> None:
    with ChatServerThread([reply("ok")], key=KEY) as server:
        chat = start_chat(
            nvim_factory, tmp_path, server, opened=False, size=(120, 30),
            options={"interactions": {"chat": {"opts": {"policy": "cowork"}}}},
        )  # fmt: skip
        chat.nvim.lua(
            "local user = require('codecompanion.config').user"
            f" user.interactions.chat.opts.context_management = {{ compaction = {{ trigger = function()"
            f" return _G.right or {answer} end }} }} require('codecompanion').setup(user)"
        )
        chat.open()
        chat.nvim.wait_screen(r"policy cowork stopped: compaction\.trigger")
        chat.nvim.wait_lua(
            "return #vim.tbl_filter(function(one) return one:find('Policy cowork is stopped') end,"
            " require('codecompanion.config').findings().failures) == 1"
        )
        health = chat.health()
        assert said in health
        assert "policy = cowork (stopped; codecompanion is used)" in health
        chat.nvim.lua(
            "_G.right = 0.5 require('codecompanion.host').notify('set_model', { chat = ..., adapter = 'loop',"
            " model = 'another-model' })",
            chat.id,
        )
        chat.nvim.wait_for(lambda: "policy cowork stopped" not in chat.nvim.screen(), "the policy to run again")
        health = chat.health()
        assert "stopped" not in health
        assert said not in health
        assert "policy = cowork, " in health
