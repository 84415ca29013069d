"""Usage is evidence, not truth (R-505, lesson 58): impossible reports from servers, and the chat's response."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.adapters.base import ChatRequest
from codecompanion.adapters.openai_chat.usage import normalise_usage
from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.counting.calibration import FIGURES, Calibration
from codecompanion.counting.tokens import MessageCounter
from codecompanion.engine.doctor import examine
from codecompanion.errors import ContextOverflow
from codecompanion.model.messages import Message, Usage
from codecompanion.model.view import with_messages
from codecompanion.session.accounts.usage_check import Doubt, UsageDoubts, sentence
from codecompanion.session.actions.choose_policy import choose_policy
from codecompanion.store.log.scratch import Calibration as StoredCalibration
from codecompanion.wire.events import Meter, Notice, TurnFinished
from tests.unit.session.accounts.test_meter import LINE, Chat, Provider
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, calls, says, submit

Lie = Callable[[int, int, int, int], Usage | None]
"""(prompt, prompt before, schemas, number of the request) → the count reported instead of the prompt."""


def chat_usage(**figures: Any) -> Usage | None:
    return normalise_usage({"completion_tokens": 40, **figures})


LIES: dict[str, Lie] = {
    "fifty": lambda now, before, schemas, n: Usage(50, 40),
    "zero": lambda now, before, schemas, n: Usage(0, 40),
    "nothing at all": lambda now, before, schemas, n: Usage(),
    "negative": lambda now, before, schemas, n: chat_usage(prompt_tokens=-now),
    "only what was not cached": lambda now, before, schemas, n: Usage(max(1, now - before), 40),
    "cached tokens beside the prompt": lambda now, before, schemas, n: chat_usage(
        prompt_tokens=max(1, now - before), prompt_tokens_details={"cached_tokens": before}
    ),
    "without the tools": lambda now, before, schemas, n: Usage(max(1, now - schemas), 40),
    "of another request": lambda now, before, schemas, n: Usage((137, 1_911, 640, 2_950)[n % 4], 40),
    "a 32-bit overflow": lambda now, before, schemas, n: Usage(2**31 - 1, 40),
    "a 64-bit overflow": lambda now, before, schemas, n: chat_usage(prompt_tokens=2**64 - now),
    "more and more": lambda now, before, schemas, n: Usage(30_000 * 2**n, 40),
}


class Liar(Chat):
    """A chat of some 20,000 tokens, a quarter of them schemas, with false usage in every reply."""

    def __init__(self, lie: Lie) -> None:
        super().__init__(Provider(1.2, hidden=6_500))
        self.meter._fixed = self.meter._schemas = 5_000
        self.lie, self.before, self.number = lie, 0, 0

    def report(self) -> bool:
        """Add a reply; return whether its usage is false or missing. The first may be true: everything is uncached."""
        estimated, prompt = self.meter.estimated_prompt(self.view), self.truth
        self.add("Done. " * 30, "assistant")
        usage = self.lie(prompt, self.before, 6_000, self.number)
        if usage is not None:
            self.meter.learn(usage, estimated, self.view)
        self.before, self.number = prompt, self.number + 1
        return usage is None or usage.prompt_tokens != prompt


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("honest", [0, 3])
def test_the_estimate_stays_in_force(name: str, honest: int) -> None:
    """It is used from the first report on, and after honest ones; nothing is learned, and the meter estimates."""
    chat = Liar(LIES[name])
    chat.add("Please read the files.", "user")
    for _ in range(honest):
        chat.add(LINE * 25)
        chat.reply()
    for number in range(8):
        chat.add(LINE * 60)
        if not chat.report():
            continue
        count = chat.meter.count(chat.view)
        assert not count.exact
        if name == "more and more" and not honest and number == 0:
            # A server's own prompt looks identical; the second report tells them apart.
            assert count.lower <= chat.truth <= count.upper
            continue
        assert abs(count.tokens / chat.truth - 1) < (0.1 if honest else 0.25), (count, chat.truth)
        assert 0.9 < chat.meter.calibration.ratio < 1.3
        assert chat.meter.calibration.extra >= 0


def test_a_report_that_grows_while_the_request_shrinks_is_not_believed() -> None:
    """The server reports a running total; that must not undo an edit."""
    chat = Chat(Provider(1.1, hidden=500))
    chat.add("Please read the files.", "user")
    for _ in range(10):
        chat.add(LINE * 60)
        chat.reply()
    messages, total = chat.view.messages, chat.truth
    chat.view = with_messages(chat.view, [*messages[:2], *messages[-4:]])
    for _ in range(6):
        chat.add(LINE * 10)
        estimated, total = chat.meter.estimated_prompt(chat.view), total + 400
        chat.add("Done. " * 30, "assistant")
        assert chat.meter.learn(Usage(total, 40), estimated, chat.view) is not None
        assert abs(chat.meter.count(chat.view).tokens / chat.truth - 1) < 0.05


def test_a_server_prompt_is_believed_once_the_reports_follow_the_requests() -> None:
    """Reports of gateways that add their own instructions look too high at first, but are true."""
    chat = Chat(Provider(1.1, hidden=21_000))
    chat.add("Please read the files.", "user")
    chat.reply()
    assert not chat.meter.count(chat.view).exact
    chat.add(LINE * 40)
    chat.reply()
    assert chat.meter.count(chat.view).exact
    assert chat.meter.count(chat.view).tokens == chat.truth


@pytest.mark.parametrize("window", [0, 200_000])
@pytest.mark.parametrize("hidden", [25_000, 40_000])
@pytest.mark.parametrize("first", [1, 500], ids=["short", "long"])
def test_a_hidden_prompt_counts_from_the_first_report_and_is_believed_from_the_second(
    window: int, hidden: int, first: int
) -> None:
    """Proxies and logins add 25,000 to 40,000 tokens: first an estimate whose bounds include both sizes, then a count.

    The next chat begins with the hidden prompt, even if a chat without one had taught an extra.
    """
    chat, doubts = Chat(Provider(1.1, hidden=hidden), Calibration(extra=300.0)), UsageDoubts()
    chat.meter.window = window
    chat.add(LINE * first, "user")
    for number in range(1, 9):
        estimated, prompt = chat.meter.estimated_prompt(chat.view), chat.truth
        reply = chat.add("Done. " * 30, "assistant")
        doubt = chat.meter.learn(Usage(prompt, chat.provider.size(reply)), estimated, chat.view)
        count = chat.meter.count(chat.view)
        assert (count.tokens, count.exact) == (chat.truth, number > 1)
        assert (doubt is None) == (number > 1)
        assert number > 1 or count.lower <= chat.truth - hidden + 400
        assert doubt is None or not doubts.note("s", doubt)
        chat.add(LINE * 20)
        assert chat.error < 0.01
    assert not doubts.sentences()
    assert abs(chat.meter.calibration.extra / hidden - 1) < 0.05
    assert 1 <= chat.meter.calibration.ratio < 1.15
    after = Chat(Provider(1.1, hidden=hidden), chat.meter.calibration)
    after.add(LINE, "user")
    assert after.error < 0.05
    after.reply()
    assert after.meter.count(after.view).exact


@pytest.mark.parametrize("window", [0, 200_000])
def test_growth_of_a_hidden_prompt_is_followed_at_once(window: int) -> None:
    """Growth below the limit is believed immediately; a larger one stays an estimate until the next report."""
    for more in (6_000, 20_000):
        chat = Chat(Provider(1.1, hidden=25_000))
        chat.meter.window, chat.meter.assumed_window = window, 128_000
        for number in range(10):
            chat.provider.hidden = 25_000 + more * (number >= 4)
            chat.add(LINE * 20, "user")
            chat.reply()
            count = chat.meter.count(chat.view)
            assert count.tokens == chat.truth
            assert count.exact == (number > 0 and (number != 4 or more < 8_000))


HIGH: dict[str, Lie] = {
    "characters": lambda now, before, schemas, n: Usage(4 * now, 40),
    "twice": lambda now, before, schemas, n: Usage(2 * now, 40),
    "of all requests so far": lambda now, before, schemas, n: Usage(now + 9_000 * (n + 1), 40),
    "once the prompt of another chat": lambda now, before, schemas, n: Usage(now + 30_000 * (n == 0), 40),
}


@pytest.mark.parametrize("name", HIGH)
@pytest.mark.parametrize("window", [64_000, 200_000])
def test_a_report_that_is_too_high_is_dropped_with_the_second(name: str, window: int) -> None:
    """Until then it is an estimate, far from filling the window; nothing is learned from it."""
    chat = Liar(HIGH[name])
    chat.meter.window = window
    for number in range(8):
        chat.add(LINE * 60)
        chat.report()
        count = chat.meter.count(chat.view)
        if number == 0:
            assert not count.exact
            assert count.lower <= chat.truth
            assert count.upper < 0.85 * window
        else:
            assert abs(count.tokens / chat.truth - 1) < 0.25, (number, count, chat.truth)
        assert 0.9 < chat.meter.calibration.ratio < 1.3
        assert 0 <= chat.meter.calibration.extra < 3_000


def test_a_history_shortened_by_the_server_is_followed_from_the_second_report_on() -> None:
    """A gateway may compact on its own; a truncating server always reports the same size (lesson 30)."""
    for step, believed in ((1.1, True), (0.0, False)):
        chat = Chat(Provider(1.1))
        chat.add("Please read the files.", "user")
        for _ in range(10):
            chat.add(LINE * 60)
            chat.reply()
        kept, sent = 4_000.0, 0
        for _ in range(4):
            sent = chat.add(LINE * 40).tokens
            estimated = chat.meter.estimated_prompt(chat.view)
            reply = chat.add("Done. " * 30, "assistant")
            chat.meter.learn(Usage(round(kept), round(1.1 * reply.tokens)), estimated, chat.view)
            kept += step * (sent + reply.tokens)
        assert (chat.meter.count(chat.view).tokens < 8_000) == believed


# koboldcpp cuts to its window (gpttype_adapter.cpp), Hunyuan to its limit (its API's text on Messages), Ollama to half.
@pytest.mark.parametrize("share", [(1.0,), (0.97, 1.0, 0.98), (0.5, 0.7, 0.6)], ids=["whole", "about", "half"])
def test_a_server_that_truncates_long_prompts_is_reported(share: tuple[float, ...]) -> None:
    """Lesson 30: reports that never exceed one size are true, and reveal the window."""
    chat, doubts = Chat(Provider(1.1)), UsageDoubts()
    told = list[str]()
    for number in range(14):
        chat.add(LINE * 40, "user")
        truth, estimated = chat.truth, chat.meter.estimated_prompt(chat.view)
        reply = chat.add("Done. " * 30, "assistant")
        reported = truth if truth <= 6_000 else 6_000 * share[number % len(share)]
        doubt = chat.meter.learn(Usage(round(reported), round(1.1 * reply.tokens)), estimated, chat.view)
        if doubt is not None and doubts.note("s", doubt):
            told.append(sentence(doubt))
    size = re.fullmatch(
        r"seems to truncate prompts to (5,[5-9]|6,0)\d\d tokens: set context_window to that .*", told[-1]
    )
    assert size, told
    assert len(told) <= 2
    assert chat.meter.count(chat.view).tokens > 9_000


@pytest.mark.parametrize("name", ["fifty", "only what was not cached", "cached tokens beside the prompt"])
def test_small_figures_do_not_mean_truncation(name: str) -> None:
    """A figure far below the largest report means uncounted tokens, not truncation."""
    chat, doubts = Liar(LIES[name]), list[Doubt]()
    for number in range(8):
        chat.add(LINE * 60, "user")
        estimated, prompt = chat.meter.estimated_prompt(chat.view), chat.truth
        chat.add("Done. " * 30, "assistant")
        usage = LIES[name](prompt, chat.before, 6_000, number)
        doubt = chat.meter.learn(usage, estimated, chat.view) if usage is not None else None
        chat.before = prompt
        doubts += [doubt] if doubt is not None else []
    assert doubts
    assert not [doubt for doubt in doubts if doubt.cut_to]


def test_a_shorter_history_confirmed_by_the_providers_cache_is_followed_at_once() -> None:
    """Recorded from an agent that compacted: the second report found exactly the first one's prompt in the cache."""
    chat = Chat(Provider(1.1))
    chat.add("Please read the files.", "user")
    for _ in range(10):
        chat.add(LINE * 60)
        chat.reply()
    for usage, believed in ((Usage(10, 40, 0, 3_000), False), (Usage(1, 30, 3_000, 95), True)):
        chat.add("word", "user")
        estimated = chat.meter.estimated_prompt(chat.view)
        chat.add("Done. " * 30, "assistant")
        assert (chat.meter.learn(usage, estimated, chat.view) is None) == believed
    assert chat.meter.count(chat.view).tokens == 3_126


@pytest.mark.parametrize("output", [0, 1, 90_000, 2**40])
def test_a_false_output_size_is_not_believed(output: int) -> None:
    """The prompt size is believed, the output size is not: the reply stays an estimate until the next report."""
    chat = Chat(Provider(1.1))
    for _ in range(3):
        chat.add(LINE * 60, "user")
        estimated, prompt = chat.meter.estimated_prompt(chat.view), chat.truth
        chat.add("def add(left, right): return left + right\n" * 40, "assistant")
        assert chat.meter.learn(Usage(prompt, output), estimated, chat.view) is None
        count = chat.meter.count(chat.view)
        assert abs(count.tokens / chat.truth - 1) < 0.05
        assert not count.exact


@pytest.mark.parametrize(("ratio", "hidden"), [(0.75, 0), (0.9, 350), (1.35, 600), (1.9, 2_000), (2.2, 5_000)])
def test_an_honest_servers_reports_are_believed(ratio: float, hidden: int) -> None:
    """They are believed with any tokenizer, including after an edit and in a short chat."""
    chat = Chat(Provider(ratio, hidden))
    for step in range(12):
        chat.add(LINE * (1 if step % 2 else 80), "user")
        chat.reply()
        assert chat.meter.count(chat.view).exact
    messages = chat.view.messages
    chat.view = with_messages(chat.view, [*messages[:2], *messages[-6:]])
    chat.add("and now?", "user")
    chat.reply()
    assert chat.error < 0.03


# ---- a chat that overflows at a server whose reports are wrong

WINDOW = 12_000
TEXT = "The parser reads one line after the other and keeps what it has seen. "


def independent_count(request: ChatRequest) -> int:
    """Return the server's own count, independent of our code."""
    texts = [part for m in request.messages for part in (m.text, *(c.name + c.arguments for c in m.tool_calls))]
    schemas = sum(len(json.dumps(tool.parameters)) + len(tool.description) for tool in request.tools)
    return (sum(map(len, texts)) + schemas) // 4 + 6 * len(texts) + 300


class Server:
    """Enforces its window by its own count, and reports false usage."""

    def __init__(self, lie: Lie | None, reply: Callable[[ChatRequest], Reply], *, says_sizes: bool) -> None:
        self.accepted: list[int] = []
        self.refused: list[int] = []
        self._lie, self._reply, self._says_sizes, self._before = lie, reply, says_sizes, 0

    def __call__(self, request: ChatRequest) -> Reply:
        prompt = independent_count(request)
        if prompt > WINDOW:
            self.refused.append(prompt)
            figures = (prompt, WINDOW) if self._says_sizes else (0, 0)
            return (ContextOverflow("s: the request is too long for the model.", *figures),)
        schemas = sum(len(json.dumps(tool.parameters)) + len(tool.description) for tool in request.tools) // 4
        lie = self._lie or (lambda now, before, schemas, n: Usage(now, 300))
        usage = lie(prompt, self._before, schemas, len(self.accepted))
        if request.purpose == "chat":
            self.accepted.append(prompt)
            self._before = prompt
        *deltas, finished = self._reply(request)
        return (*deltas, type(finished)(finished.stop, finished.tool_calls, usage))


def talks(request: ChatRequest) -> Reply:
    return says("A summary. " * 20 if request.purpose == "summary" else TEXT * 20)


def reads() -> Callable[[ChatRequest], Reply]:
    numbers = itertools.count(1)

    def answer(request: ChatRequest) -> Reply:
        if request.purpose == "summary" or request.messages[-1].role == "tool":
            return talks(request)
        return calls((f"c{next(numbers)}", "read_file", json.dumps({"path": "a.txt"})))

    return answer


async def overflow(root: Path, case: str, lie: Lie | None, policy: str) -> tuple[Bench, Server]:
    """Run a chat of some 30,000 tokens in a window of 12,000."""
    (root / "a.txt").write_text("\n".join(TEXT for _ in range(40)))
    server = Server(lie, reads() if case == "tool loop" else talks, says_sizes=case == "sizes are told")
    window = 4 * WINDOW if case == "the window is believed larger" else WINDOW
    bench = Bench(root, ScriptedAdapter("s", server), window=window, checks_usage=True)
    session = await bench.open()
    await choose_policy(session, policy)
    for number in range(30):
        text = TEXT * 250 if case == "one long message" and number == 20 else TEXT * 18
        session.submit(submit(f"{number}: {text}", number + 1))
        await bench.idle(session)
    return bench, server


CASES = ("dialogue", "tool loop", "one long message", "the window is believed larger", "sizes are told")


@pytest.mark.slow("every lie with every way of counting")
@pytest.mark.parametrize("lie", [None, *LIES])
@pytest.mark.parametrize("case", CASES)
async def test_an_overflowing_chat_continues_with_any_usage(tmp_path: Path, case: str, lie: str | None) -> None:
    """R-535: false usage makes no difference; the final request fits by the server's own count."""
    bench, server = await overflow(tmp_path, case, LIES[lie] if lie else None, "codecompanion")
    ended = bench.of(TurnFinished)
    assert [end.reason for end in ended] == ["done"] * 30, [end.error for end in ended if end.error][:1]
    assert max(server.accepted) <= WINDOW
    assert not bench.bugs
    known = case != "the window is believed larger"
    assert len(server.refused) <= (3 if known else 12)


@pytest.mark.slow("every lie under every policy")
@pytest.mark.parametrize("policy", policy_names())
@pytest.mark.parametrize("lie", ["fifty", "without the tools", "more and more"])
async def test_every_policy_continues(tmp_path: Path, policy: str, lie: str) -> None:
    """No policy gets stuck because of a server's reports."""
    bench, server = await overflow(tmp_path, "dialogue", LIES[lie], policy)
    assert [end.reason for end in bench.of(TurnFinished)] == ["done"] * 30
    assert max(server.accepted) <= WINDOW


async def test_false_usage_is_reported_once_and_in_the_health_check(tmp_path: Path) -> None:
    """One sentence per endpoint, also in `:checkhealth`; the meter shows `~`; another chat does not repeat it."""
    bench = Bench(
        tmp_path, ScriptedAdapter("offline", Server(LIES["fifty"], talks, says_sizes=False)), checks_usage=True
    )
    for chat in ("chat-1", "chat-2"):
        session = await bench.open(chat)
        for number in range(3):
            session.submit(submit(f"{number}: {TEXT * 50}", number + 1))
            await bench.idle(session)
    [told] = [notice.text for notice in bench.of(Notice) if "tokens" in notice.text]
    assert told.startswith("offline reports too few tokens (50 instead of about ")
    assert not bench.of(Meter)[-1].exact
    [found] = [finding for finding in examine(bench.services) if finding.name.startswith("usage of")]
    assert (found.name, found.ok) == ("usage of offline", False)
    assert found.text.startswith("reports too few tokens (50 instead of about ")


async def test_false_usage_does_not_prove_that_the_provider_does_not_compact(tmp_path: Path) -> None:
    """R-534: a prompt reported far above the threshold by a lying server is not a missed compaction."""
    server = Server(LIES["a 32-bit overflow"], talks, says_sizes=False)
    bench = Bench(tmp_path, ScriptedAdapter("s", server, native=True), checks_usage=True)
    session = await bench.open()
    for number in range(5):
        session.submit(submit(f"{number}: {TEXT * 10}", number + 1))
        await bench.idle(session)
    told = [notice.text for notice in bench.of(Notice)]
    assert not any("asked to compact but did not" in text for text in told), told


async def test_an_honest_server_causes_no_message(tmp_path: Path) -> None:
    bench, _ = await overflow(tmp_path, "tool loop", None, "codecompanion")
    assert [notice.text for notice in bench.of(Notice) if "reports" in notice.text] == []
    assert bench.services.usage_doubts.sentences() == []


async def test_calibration_of_one_address_is_not_used_for_another(tmp_path: Path) -> None:
    """The same adapter entry with another server address may mean another tokenizer and other habits."""
    bench = Bench(tmp_path, ScriptedAdapter("s", talks))
    services, settings = bench.services, bench.services.adapters.settings("s")
    services.adapters.add(bench.adapter, type(settings)(name="s", kind="openai", base_url="http://user:pw@one.test/v1"))
    assert services.endpoint("s") == "s http://one.test/v1"
    services.keep_calibration("s", "m", Calibration(1.7, 9_000))
    assert services.calibration("s", "m").ratio == 1.7
    services.adapters.add(bench.adapter, type(settings)(name="s", kind="openai", base_url="http://two.test/v1"))
    assert services.calibration("s", "m") == Calibration()


async def test_the_calibration_of_an_endpoint_survives_a_restart(tmp_path: Path) -> None:
    """R-505: ratio, extra and the width of the band; values whose meaning has changed are ignored."""
    bench = Bench(tmp_path, ScriptedAdapter("s", talks))
    learned = Calibration(1.7, 9_000, 120.0, above=2.5, below=0.4)
    bench.services.keep_calibration("s", "m", learned)
    old = StoredCalibration("s", "old", 1.7, 9_000, figures=FIGURES + 1)
    bench.services.store.save_calibration(old).result()
    bench.services.store.save_calibration(StoredCalibration("s", "damaged", -3.0, 9_000)).result()
    again = Bench(tmp_path, ScriptedAdapter("s", talks), store=bench.store)
    again.services.load_calibrations()
    assert again.services.calibration("s", "m") == learned
    assert again.services.calibration("s", "old") == Calibration()
    assert again.services.calibration("s", "damaged") == Calibration()


async def test_a_damaged_calibration_row_does_not_keep_the_host_from_starting(tmp_path: Path) -> None:
    """SQLite allows text in a numeric column; the other rows count."""
    bench = Bench(tmp_path, ScriptedAdapter("s", talks))
    bench.services.keep_calibration("s", "m", Calibration(1.7, 9_000))
    damage: list[dict[str, Any]] = [{"ratio": "abc"}, {"weight": "many"}, {"extra": b"x"}, {"extra": 1e300}]
    for number, wrong in enumerate(damage):
        row = StoredCalibration("s", f"damaged-{number}", 1.7, 9_000, figures=FIGURES)
        bench.services.store.save_calibration(msgspec.structs.replace(row, **wrong)).result()
    again = Bench(tmp_path, ScriptedAdapter("s", talks), store=bench.store)
    again.services.load_calibrations()
    assert again.services.calibrations == {("s", "m"): Calibration(1.7, 9_000)}


def test_each_endpoint_is_reported_once() -> None:
    doubts, chat = UsageDoubts(), Liar(LIES["fifty"])
    chat.add(LINE * 100, "user")
    doubt = chat.meter.learn(Usage(50, 4), chat.meter.estimated_prompt(chat.view), with_reply(chat))
    assert doubt is not None
    assert [doubts.note(name, doubt) for name in ("a", "b", "a")] == [True, True, False]
    assert len(doubts.sentences()) == 2


def with_reply(chat: Chat) -> Any:
    chat.add("Done.", "assistant")
    return chat.view


def test_checking_usage_costs_no_more_in_a_long_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lesson 31: messages compared once are not compared again."""
    looked_at, marks = list[str](), MessageCounter.marks

    def counted(self: MessageCounter, message: Message) -> int:
        looked_at.append(message.id)
        return marks(self, message)

    monkeypatch.setattr(MessageCounter, "marks", counted)
    chat = Liar(LIES["fifty"])
    for _ in range(300):
        chat.add("word", "user")
    chat.report()
    before = len(looked_at)
    for _ in range(5):
        chat.add(LINE, "user")
        chat.report()
        chat.meter.count(chat.view)
    assert 0 < len(looked_at) - before <= 20
