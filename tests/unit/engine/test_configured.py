"""Mistakes in what the editor configured: the host starts, the default is in force, every chat says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codecompanion import settings
from codecompanion.engine.runtime import Runtime
from codecompanion.events import ChatOpened, Notice
from codecompanion.requests import Hello, OpenChat, Snapshot


async def open_chats(root: Path, count: int = 1, **options: Any) -> list[Any]:
    """Greet a host with these chat options and open chats; return the events."""
    given = settings.defaults()
    given["chat"] |= options
    folders = {"data_dir": str(root / "data"), "cache_dir": str(root / "cache"), "log_path": str(root / "log")}
    told: list[Any] = []
    host = Runtime(told.append)
    await host.handle(Hello(settings=given, nvim="0.11", **folders))
    for number in range(count):
        await host.handle(OpenChat(chat=f"chat{number}", snapshot=Snapshot(cwd=str(root))))
    await host.aclose()
    return told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policies": {"mine": {"extends": "nope"}}}, "interactions.chat.opts.policies.mine.extends: "),
        ({"policies": {"mine": {"extends": "cowork", "compaction.triger": 0.8}}, "policy": "mine"}, ".triger: "),
        ({"policy": "kodacod"}, "interactions.chat.opts.policy: there is no policy 'kodacod'; expected kodacode"),
        ({"adapter_policies": {"loop": "nope"}}, "interactions.chat.opts.policy: there is no policy 'nope'"),
    ],
)
async def test_a_chat_says_which_policy_is_wrong_and_goes_on_with_the_default(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    """K1: the key is named as it is written in setup(), in the chat, where all of the sentence can be read."""
    told = await open_chats(tmp_path, **options)
    assert [event.policy for event in told if isinstance(event, ChatOpened)] == ["codecompanion"]
    (notice,) = [event for event in told if isinstance(event, Notice)]
    assert said in notice.text
    assert notice.text.endswith(". Policy codecompanion is used instead.")
    assert notice.text.startswith("interactions.chat.opts.polic")
    assert notice.chat == "chat0"


async def test_every_chat_says_what_is_not_remembered(tmp_path: Path) -> None:
    """R-447: a wrong exclusion may let through what must not be kept."""
    told = await open_chats(tmp_path, 2, memory={**settings.defaults()["chat"]["memory"], "exclude": ["("]})
    notices = [event for event in told if isinstance(event, Notice)]
    assert [notice.chat for notice in notices] == ["chat0", "chat1"]
    assert all("memory.exclude" in n.text and "Nothing is remembered" in n.text for n in notices)


async def test_without_mistakes_nothing_is_said(tmp_path: Path) -> None:
    assert not [event for event in await open_chats(tmp_path) if isinstance(event, Notice)]
