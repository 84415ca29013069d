"""A chat's use of its server's facts: the window, and whether the model sees tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from codecompanion.adapters.base import AdapterSettings, ChatRequest, Finished, TextDelta
from codecompanion.adapters.server_facts import ServerFacts
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import ContextOverflow
from codecompanion.model.history import UsageReported
from codecompanion.model.messages import ToolCall, Usage
from codecompanion.session.actions.switch_tools import choose_tools
from codecompanion.session.session import Session
from codecompanion.wire.events import Meter, ModelChanged, Notice, ReplyFinished, ToolFinished
from codecompanion.wire.requests import ChooseTools
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, calls, says, submit

NO_TEMPLATE = ServerFacts(window=8192, tools=False, model="smol")


def local(tmp_path: Path, adapter: ScriptedAdapter, **settings: object) -> Bench:
    """Return a bench whose adapter is a local model server."""
    bench = Bench(tmp_path, adapter, checks_usage=True)
    entry = AdapterSettings(name=adapter.name, kind="offline", local_server=True)
    bench.services.adapters.add(adapter, entry)
    return bench


async def say(bench: Bench, session: Session, text: str) -> None:
    session.submit(submit(text))
    await bench.idle(session)


def notices(bench: Bench, about: str) -> list[str]:
    return [notice.text for notice in bench.of(Notice) if about in notice.text]


async def test_a_model_without_tools_in_its_template_gets_none_and_one_note(tmp_path: Path) -> None:
    """In a window of 4k they would uselessly take half of it."""
    adapter = ScriptedAdapter("s", lambda request: says("ok"))
    bench = local(tmp_path, adapter)
    session = await bench.open()
    whole = session.control.measured().tokens
    adapter.told = NO_TEMPLATE
    await say(bench, session, "one")
    await say(bench, session, "two")
    assert [request.tools for request in adapter.requests] == [(), ()]
    assert notices(bench, "tools") == ["No tools are sent: the chat template of smol does not support them."]
    assert session.control.measured().tokens < whole
    assert bench.of(Meter)[-1].no_tools
    adapter.told = ServerFacts(window=8192, tools=True)
    await say(bench, session, "three")
    assert adapter.requests[-1].tools
    assert not bench.of(Meter)[-1].no_tools


async def test_the_note_is_not_repeated_when_the_server_names_its_model_later(tmp_path: Path) -> None:
    """A server that the message had to wait for is known after the first reply; the next turn uses its model's name."""

    def answer(request: ChatRequest) -> Reply:
        adapter.told = NO_TEMPLATE
        return says("ok")

    adapter = ScriptedAdapter("s", answer)
    bench = local(tmp_path, adapter)
    session = await bench.open()
    await say(bench, session, "one")
    await say(bench, session, "two")
    assert len(notices(bench, "No tools are sent")) == 1


async def test_a_server_restarted_with_another_window_is_noticed_in_every_chat(tmp_path: Path) -> None:
    """Old and new chats have the same window, smaller or larger."""
    adapter = ScriptedAdapter("s", lambda request: says("ok"))
    bench = local(tmp_path, adapter)
    adapter.told = ServerFacts(window=8192, tools=True)
    old = await bench.open()
    for window in (4096, 16384):
        adapter.told = ServerFacts(window=window, tools=True)
        await say(bench, old, "hello")
        assert bench.of(Meter)[-1].window == window
        new = await bench.open("chat-2")
        assert new.control.limits == old.control.limits
        old.refresh_limits()


async def test_the_chat_names_the_running_model_unless_one_is_configured(tmp_path: Path) -> None:
    """A server with one model answers with it, whatever name a request has."""
    adapter = ScriptedAdapter("s", lambda request: says("ok"))
    bench = local(tmp_path, adapter)
    session = await bench.open()
    for name in ("smol", "qwen3"):
        adapter.told = ServerFacts(window=8192, model=name)
        await say(bench, session, "hello")
        assert (session.model, adapter.requests[-1].model) == (name, name)
        assert bench.of(ModelChanged)[-1].model == name
    changes = len(bench.of(ModelChanged))
    entry = bench.services.adapters.settings("s")
    bench.services.adapters.add(adapter, msgspec.structs.replace(entry, model="qwen3"))
    adapter.told = ServerFacts(window=8192, model="another")
    await say(bench, session, "hello")
    assert session.model == "qwen3"
    assert len(bench.of(ModelChanged)) == changes


async def test_a_window_from_a_refusal_is_valid_until_the_server_reports_another(tmp_path: Path) -> None:
    """No setting is suggested, because it would be wrong after the next start of the server."""
    adapter = ScriptedAdapter("s", [[ContextOverflow("s: too long", 9000, 6000)], says("ok"), says("ok")])
    bench = local(tmp_path, adapter)
    adapter.told = ServerFacts(window=8192, tools=False)
    session = await bench.open()
    await say(bench, session, "word " * 3000)
    assert session.control.limits.context_window == 6000
    assert notices(bench, "6,000") == ["The window of scripted-1 is 6,000 tokens, not 8,192."]
    adapter.told = ServerFacts(window=12_000, tools=False)
    await say(bench, session, "hello")
    assert session.control.limits.context_window == 12_000


class Dropping:
    """A server that drops a request's tools before it counts it. `share`: its tokens per token of text that we count.

    `of_tools`: the same for the tools, which are then not dropped.
    """

    def __init__(self, share: float = 1.0, of_tools: float = 0.0) -> None:
        self.share, self.of_tools, self.session = share, of_tools, None

    def __call__(self, request: ChatRequest) -> Reply:
        counter = self.session.control.meter.counter
        tokens = self.share * sum(counter.message(message) for message in request.messages)
        return says("ok " * 60, Usage(round(tokens + self.of_tools * counter.tools(request.tools)), 60))


@pytest.mark.parametrize("share", [0.8, 1.0, 1.2])
async def test_two_reports_that_fit_without_the_tools_show_that_the_model_does_not_see_them(
    tmp_path: Path, share: float
) -> None:
    """Then none are sent and the server's counts are believed; the first report alone causes no notice."""
    server = Dropping(share)
    adapter = ScriptedAdapter("s", server)
    bench = local(tmp_path, adapter)
    session = server.session = await bench.open()
    await say(bench, session, "one " * 100)
    assert not bench.of(Notice)
    assert adapter.requests[-1].tools
    await say(bench, session, "two " * 100)
    assert notices(bench, "") == ["No tools are sent: token counts show that scripted-1 does not see them."]
    assert bench.of(Meter)[-1].exact
    await say(bench, session, "three " * 100)
    assert adapter.requests[-1].tools == ()
    assert bench.of(Meter)[-1].exact
    assert bench.services.usage_doubts.sentences() == []
    new = await bench.open("chat-2")
    assert new.control.specs == ()
    await choose_tools(session, ChooseTools(chat="chat-1", names=("read_file",), how="only"))
    assert [spec.name for spec in session.control.specs] == ["read_file"]


async def test_explicitly_chosen_tools_are_sent_to_a_server_that_refused_them(tmp_path: Path) -> None:
    """It may have been restarted with `--jinja`, which is not visible."""
    bench = local(tmp_path, ScriptedAdapter("s", lambda request: says("ok")))
    adapter = bench.services.adapters.get("s")
    adapter.told = ServerFacts(window=8192, tools=False, refuses_tools="the server was started without --jinja")
    session = await bench.open()
    assert session.control.specs == ()
    said = await choose_tools(session, ChooseTools(chat="chat-1", names=("read_file",), how="only"))
    assert said.startswith("1 tool offered")
    assert [spec.name for spec in session.control.specs] == ["read_file"]


@pytest.mark.parametrize("words", [20, 800, 1_600, 2_400])
@pytest.mark.parametrize(("share", "of_tools"), [(0.45, 0.45), (0.5, 0.5), (0.6, 0.6), (0.75, 0.75), (1.0, 0.3)])
async def test_a_low_token_count_does_not_disable_tools(
    tmp_path: Path, share: float, of_tools: float, words: int
) -> None:
    """Its reports are low from the first one on, and tools in a short form are a third of their JSON."""
    server = Dropping(share, of_tools)
    adapter = ScriptedAdapter("s", server)
    bench = local(tmp_path, adapter)
    session = server.session = await bench.open()
    await say(bench, session, "one " * words)
    for text in ("two ", "three ", "four "):
        await say(bench, session, text * 60)
    assert all(request.tools for request in adapter.requests)
    assert not notices(bench, "No tools")


async def test_a_server_that_counts_only_uncached_tokens_keeps_its_tools(tmp_path: Path) -> None:
    """Each report is as small as a chat without tools, and does not grow with it."""
    adapter = ScriptedAdapter("s", lambda request: says("ok " * 60, Usage(150, 60)))
    bench = local(tmp_path, adapter)
    session = await bench.open()
    for text in ("one ", "two ", "three ", "four "):
        await say(bench, session, text * 100)
    assert all(request.tools for request in adapter.requests)


async def test_a_call_in_one_chat_shows_for_all_that_the_model_sees_tools(tmp_path: Path) -> None:
    """This applies even if tools were no longer sent; afterwards no report is a reason to drop them."""
    server = Dropping()
    adapter = ScriptedAdapter("s", server)
    bench = local(tmp_path, adapter)
    session = server.session = await bench.open()
    doubts = bench.services.usage_doubts
    for text in ("one ", "two "):
        await say(bench, session, text * 100)
    assert session.control.specs == ()
    session.control.unseen_tools.see_calls((ToolCall("c1", "read_file", "{}"),))
    assert session.control.specs
    other = server.session = await bench.open("chat-2")
    for text in ("one ", "two ", "three "):
        await say(bench, other, text * 100)
    assert adapter.requests[-1].tools
    doubts.note_toolless(session.control.endpoint, session.model)
    assert not doubts.hides_tools(session.control.endpoint, session.model)


@pytest.mark.parametrize("runs_itself", [None, False])
async def test_a_server_with_tools_in_its_template_or_without_a_model_is_only_doubted(
    tmp_path: Path, runs_itself: bool | None
) -> None:
    """The template is known, or a local entry is a gateway that counts in its own way: only its counts are wrong."""
    server = Dropping()
    adapter = ScriptedAdapter("s", server)
    bench = local(tmp_path, adapter)
    if runs_itself is None:
        adapter.told = ServerFacts(window=32_768, tools=True)
    adapter.runs_model_itself = lambda model: runs_itself  # type: ignore[method-assign]
    session = server.session = await bench.open()
    for text in ("one ", "two "):
        await say(bench, session, text * 100)
    assert adapter.requests[-1].tools
    assert notices(bench, "too few tokens")


async def test_a_call_of_an_offered_tool_runs_even_if_the_server_reports_a_small_window_meanwhile(
    tmp_path: Path,
) -> None:
    """The next request offers fewer tools; this reply answers the one before."""
    (tmp_path / "a.txt").write_text("hello")

    def answer(request: ChatRequest) -> Reply:
        if len(adapter.requests) > 1:
            return says("done")
        adapter.told = ServerFacts(window=4096, tools=False)
        session.refresh_limits()
        return calls(("c1", "read_file", '{"path": "a.txt"}'))

    adapter = ScriptedAdapter("s", answer)
    bench = local(tmp_path, adapter)
    session = await bench.open()
    await say(bench, session, "read a.txt")
    assert session.control.specs == ()
    assert [finished.status for finished in bench.of(ToolFinished)] == ["ok"]


async def test_a_window_from_a_refusal_is_kept_over_any_model_list(tmp_path: Path) -> None:
    """The model list of a paid endpoint has the window of the model, and the refusal that of the account."""
    adapter = ScriptedAdapter("s", [[ContextOverflow("s: too long", 9000, 6000)], says("ok"), says("ok")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await say(bench, session, "word " * 3000)
    assert session.control.limits.context_window == 6000
    adapter.limits = lambda model: ModelLimits(12_000)  # type: ignore[method-assign]
    await say(bench, session, "hello")
    assert session.control.limits.context_window == 6000


async def test_a_model_chosen_during_the_reply_keeps_its_tools(tmp_path: Path) -> None:
    """The server's facts in the reply are about the previous model."""
    other = ScriptedAdapter("t", [])

    def answer(request: ChatRequest) -> Reply:
        session.control.use_model("t", "")
        return says("ok", Usage(500, 10))

    adapter = ScriptedAdapter("s", answer)
    bench = local(tmp_path, adapter)
    other.told = ServerFacts(window=32_768, tools=False)
    bench.services.adapters.add(other, AdapterSettings(name="t", kind="offline", local_server=True))
    session = await bench.open()
    await say(bench, session, "hello")
    reported = [
        event.payload for event in bench.store.load_events("chat-1") if isinstance(event.payload, UsageReported)
    ]
    assert reported[0].estimated_prompt_tokens > 2_000, "the tools that were sent are counted"


async def test_a_model_that_calls_tools_sees_them_whatever_is_reported(tmp_path: Path) -> None:
    """Its server omits them from its counts: the plugin's own count applies, as before."""
    server = Dropping()
    replies = iter([calls(("c1", "read_file", '{"path": "a"}'), usage=Usage(300, 20))])
    adapter = ScriptedAdapter("s", lambda request: next(replies, None) or server(request))
    bench = local(tmp_path, adapter)
    session = server.session = await bench.open()
    for text in ("one", "two", "three"):
        await say(bench, session, text)
    assert adapter.requests[-1].tools
    assert notices(bench, "too few tokens")


async def test_an_endpoint_that_runs_no_model_is_not_judged_this_way(tmp_path: Path) -> None:
    """A gateway at its own address may omit the schemas from its counts."""
    server = Dropping()
    adapter = ScriptedAdapter("s", server)
    bench = Bench(tmp_path, adapter, checks_usage=True)
    session = server.session = await bench.open()
    for text in ("one", "two", "three"):
        await say(bench, session, text)
    assert adapter.requests[-1].tools
    assert notices(bench, "too few tokens")


@pytest.mark.parametrize("is_refreshed", [False, True])
@pytest.mark.parametrize("why", ["", "the server was started without --jinja"])
async def test_facts_reported_with_the_first_reply_apply_to_that_reply(
    tmp_path: Path, why: str, is_refreshed: bool
) -> None:
    """A router loads the model with the first request; a refused request is sent again without tools."""
    server = Dropping()

    def answer(request: ChatRequest) -> Reply:
        adapter.told = ServerFacts(window=8192, tools=False, refuses_tools=why, model="scripted-1")
        if is_refreshed:
            session.refresh_limits()
        return server(request)

    adapter = ScriptedAdapter("s", answer)
    bench = local(tmp_path, adapter)
    session = server.session = await bench.open()
    await say(bench, session, "one " * 40)
    assert adapter.requests[-1].tools
    assert bench.of(Meter)[-1].exact
    assert session.control.specs == ()
    await say(bench, session, "two " * 40)
    assert notices(bench, "") == [
        f"No tools are sent: {why or 'the chat template of scripted-1 does not support them'}."
    ]


@pytest.mark.parametrize(
    ("entry", "other"),
    [
        ({"kind": "openai_compatible", "base_url": "https://gateway.example/v1"}, "qwen3"),
        ({"kind": "openai", "base_url": "http://127.0.0.1:1/v1", "local_server": True}, "qwen3"),
        ({"kind": "openai", "base_url": "https://api.openai.com/v1"}, UNSET),
        ({"kind": "anthropic", "base_url": "https://api.anthropic.com/v1"}, UNSET),
    ],
)
async def test_a_gateway_or_local_server_that_answers_with_another_model_is_named(
    tmp_path: Path, entry: dict[str, Any], other: object
) -> None:
    """A provider answers to an alias with the name of a version."""
    adapter = ScriptedAdapter("s", lambda request: (TextDelta("ok"), Finished("stop", (), None, "qwen3")))
    bench = Bench(tmp_path, adapter)
    bench.services.adapters.add(adapter, AdapterSettings(name="s", **entry))
    session = await bench.open()
    await say(bench, session, "hello")
    assert bench.of(ReplyFinished)[-1].other_model == other
