"""An invalid option stops the policies that read it; chats use the default one and report that (R-347, R-350)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from codecompanion import settings
from codecompanion.engine.runtime import Runtime
from codecompanion.errors import ConfigError
from codecompanion.wire.events import ChatOpened, Meter, Notice, PolicyChanged
from codecompanion.wire.requests import Hello, ListPolicies, OpenChat, SetPolicy, Snapshot

OPTIONS = "interactions.chat.opts.context_management"
STYLE = 'interactions.chat.opts.response_style: got "loud"; expected "default" or "terse"'


class Host:
    """A greeted host with one open chat."""

    def __init__(self, root: Path) -> None:
        self.root, self.told = root, list[Any]()
        self.runtime = Runtime(self.told.append)

    async def open(self, wrong_options: tuple[str, ...] = (), tools: bool = True, **chat: Any) -> None:
        given = settings.defaults()
        given["chat"] |= chat
        given["tools"]["enabled"] = tools
        folders = {name: str(self.root / name) for name in ("data_dir", "cache_dir", "log_path")}
        await self.runtime.handle(Hello(settings=given, nvim="0.11", wrong_options=wrong_options, **folders))
        await self.runtime.handle(OpenChat(chat="chat", snapshot=Snapshot(cwd=str(self.root))))

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]

    @property
    def header(self) -> tuple[str, str]:
        """Return the stopped policy and its option from the newest header, each "" if none."""
        meter = self.of(Meter)[-1]
        return meter.stopped or "", meter.stopped_by or ""


@pytest.mark.parametrize(
    ("policy", "wrong", "key"),
    [
        ("kodacode", {"compaction_threshold": 5.5}, "compaction_threshold"),
        ("kodacode", {"sessions": {"compaction_threshold": "much"}}, "sessions.compaction_threshold"),
        (
            "kodacode",
            {"sessions": {"compaction_threshold": 0.5, "compaction_target_threshold": 0.7}},
            "sessions.compaction_target_threshold",
        ),
        ("kodacode strict", {"compaction": {"summary_size": "x"}}, "compaction.summary_size"),
        ("cowork", {"compaction": {"trigger": 1.5}}, "compaction.trigger"),
    ],
)
async def test_an_invalid_value_stops_the_policy_and_names_the_key_as_written(
    tmp_path: Path, policy: str, wrong: dict[str, Any], key: str
) -> None:
    host = Host(tmp_path)
    await host.open(policy=policy, context_management=wrong)
    (opened,), (notice,) = host.of(ChatOpened), host.of(Notice)
    assert opened.policy == "codecompanion"
    assert notice.text.startswith(f"{OPTIONS}.{key}: ")
    assert notice.text.endswith(f". Policy {policy} is stopped; codecompanion is used instead.")
    assert host.header == (policy, key)
    await host.runtime.aclose()


async def test_the_default_policy_continues_with_its_own_value(tmp_path: Path) -> None:
    host = Host(tmp_path)
    await host.open(context_management={"compaction": {"trigger": 1.5}, "editing": {"keep_cycles": 1}})
    (notice,) = host.of(Notice)
    assert notice.text.endswith("The policy's own value is used instead.")
    assert host.header == ("", "")
    assert host.runtime.services.settings.chat.context_management == {"editing.keep_cycles": 1}
    await host.runtime.aclose()


@pytest.mark.parametrize(
    ("sentence", "stopped"),
    [
        (STYLE, "response_style"),
        ('interactions.chat.opts.context_packet.enabled_sections.1: got "x"', "context_packet.enabled_sections.1"),
        (f'{OPTIONS}.sessions.response_style: got "loud"', "sessions.response_style"),
        (f"{OPTIONS}.compaction_threshold: got true", "compaction_threshold"),
        (f"{OPTIONS}.editing.keep_cycles: got -1; the smallest value is 0", ""),
        (f"{OPTIONS}.compaction_treshold: unknown key", ""),
        (f"{OPTIONS}.policy: unknown key here; did you mean `interactions.chat.opts.policy`?", ""),
    ],
)
async def test_the_editors_findings_stop_the_policies_that_read_them(
    tmp_path: Path, sentence: str, stopped: str
) -> None:
    """R-347, R-350: the editor has already removed the invalid values; a misspelt name stops nothing."""
    host = Host(tmp_path)
    await host.open(policy="kodacode", wrong_options=(sentence,))
    assert [event.policy for event in host.of(ChatOpened)] == ["codecompanion" if stopped else "kodacode"]
    assert host.header == (("kodacode", stopped) if stopped else ("", ""))
    (told,) = host.of(Notice)
    assert re.match(re.escape(sentence.removesuffix("?")) + r"[.?] [A-Z]", told.text)
    await host.runtime.aclose()


async def test_a_stopped_policy_cannot_be_chosen_and_another_one_ends_the_warning(tmp_path: Path) -> None:
    host = Host(tmp_path)
    await host.open(policy="kodacode", wrong_options=(STYLE,))
    with pytest.raises(ConfigError, match='response_style: got "loud"'):
        await host.runtime.handle(SetPolicy(chat="chat", policy="kodacode"))
    listed: Any = await host.runtime.handle(ListPolicies(chat="chat"))
    described = {policy["name"]: policy["description"] for policy in listed}
    assert described["kodacode"] == f"Stopped: {STYLE}"
    await host.runtime.handle(SetPolicy(chat="chat", policy="cowork"))
    assert [event.policy for event in host.of(PolicyChanged)] == ["cowork"]
    assert host.header == ("", "")
    await host.runtime.aclose()


async def test_a_stopped_policy_for_chats_without_tools_is_replaced_too(tmp_path: Path) -> None:
    host = Host(tmp_path)
    await host.open(policy="cowork", tools=False, context_management={"chat": {"window": -1}})
    assert [event.policy for event in host.of(ChatOpened)] == ["codecompanion"]
    assert host.header == ("cowork_chat", "chat.window")
    await host.runtime.aclose()


async def test_a_users_policy_that_extends_a_stopped_one_is_stopped_with_it(tmp_path: Path) -> None:
    """An invalid policy that extends the stopped one leads to the default in two steps."""
    for own in ({"extends": "kodacode"}, {"extends": "kodacode", "stage": "x"}):
        host = Host(tmp_path)
        await host.open(policy="mine", policies={"mine": own}, wrong_options=(STYLE,))
        assert [event.policy for event in host.of(ChatOpened)] == ["codecompanion"]
        assert host.header[0] == "mine"
        await host.runtime.aclose()


async def test_an_unknown_policy_name_is_in_the_header_too(tmp_path: Path) -> None:
    host = Host(tmp_path)
    await host.open(policy="kodacod")
    assert host.header == ("kodacod", "no such policy")
    await host.runtime.aclose()
