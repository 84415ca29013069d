"""Error of the token count on recorded sessions, against the provider's reports (R-505, lessons 7, 8, 45).

    python -m bench.bench_counting [--model claude-3-5-sonnet] [--fresh] [--json] [FILE…]

Replays the production meter (`accounts.meter.ContextMeter`) over every transcript whose replies carry usage; without
files, over those of ../shared. The prediction for a request uses no later data. One calibration is carried from file to
file of a folder, as from chat to chat of a model; `--fresh` resets it for every file.

A recording may differ from the requests that were sent. The provider's own figures and arithmetic, never our error,
decide which requests are recorded correctly:

    first       nothing was reported before; the recording lacks the tool schemas (and pi's system prompt), so that
                only a calibration that has seen another chat of the same tool can know the size
    cut         the prompt is below 0.7 of the one before: the agent compacted, its summary is not recorded; from
                here on a message of the missing size replaces it
    impossible  the added text has more tokens than bytes (and 32 a message), or less than one per 8 bytes, or the
                previous reply has less than one per 16 (it was cut off): these messages are not the ones that were sent
    rewritten   the provider found some, but not all of the earlier prompt in its cache: history or tools had changed
    between     it found more than the earlier prompt: a request in between is not recorded
    cold        it found nothing although it had before: an expired cache or changed tools, which look identical
    sound       it found exactly the earlier prompt, or the recording has no cache figures at all

The goal (p50 <= 0.1 %, p95 <= 0.9 %, p99 <= 3.5 %) applies to the sound requests. "as recorded" covers the sound, the
cold and the rewritten ones, "every request" all but the first ones and the cuts; 95 % of each must lie within the
bounds of their counts. `--half 0` and `--half 1` use every second session only: parameters fitted on one half are
checked on the other. "reverted" uses the meter at a request to count the prompt of an earlier request of the same file:
an edit of known size.

    python -m bench.bench_counting --hidden 25000 40000 [--grows 8000] [--window 0]

Adds tokens to every report, like a proxy that prepends its own prompt and tools, and to the cache figures where the
recording has some. The sound requests are listed by their number in the chat, with a calibration that has seen nothing
(fresh), 12 requests of another chat with the same endpoint (taught), or such a chat without the hidden prompt (taught
without). Besides the full recordings, chats of 12 requests begin in the middle of the longer ones, as after a change of
the model. `--grows` lets the hidden prompt grow once, at the fourth request.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal, get_args

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from codecompanion.counting.calibration import Calibration, Count
from codecompanion.counting.tokens import MessageCounter, chars4
from codecompanion.model.messages import Message, Usage, with_changes
from codecompanion.model.transcript_format import read_bytes
from codecompanion.model.view import View, append, with_messages
from codecompanion.session.accounts.meter import ContextMeter

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "data" / "transcripts"

Kind = Literal["sound", "cold", "rewritten", "between", "impossible", "first", "cut"]
Taught = Literal["fresh", "taught", "taught without"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
# Extra chats that start partway through a recording: one per this many requests, each this many requests long.
_EVERY, _LENGTH, _GROWS_AT = 16, 12, 4
_ASSUMED = 128_000
# A breakpoint may be some tokens before the end of a prompt; up to 10 are recorded.
CACHE_SLACK = 16


@dataclass(frozen=True, slots=True)
class Request:
    """One recorded request: the prediction made just before it, and the provider's report.

    `cold`, `chars4` and `unreported` are other counts of the whole history, which after a cut is not the history that
    was sent. `unreported` uses what earlier chats taught (None: there were none), and no report of this one; `idle`
    also uses the provider's count of the idle chat before the request (None: it is the first).
    """

    file: str
    kind: Kind
    reported: int
    count: Count
    cold: int
    unreported: Count | None
    idle: Count | None
    chars4: int
    cuts: int
    after_cut: bool

    @property
    def error(self) -> float:
        """Return |predicted - reported| / reported."""
        return abs(self.count.tokens / self.reported - 1)


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of replaying one file; `taken_back` are relative errors."""

    requests: tuple[Request, ...]
    taken_back: tuple[float, ...]
    calibration: Calibration


def classify(
    before: Usage | None, now: Usage, added: Sequence[Message], has_cached: bool, reply: Message | None = None
) -> Kind:
    """Return whether the recording shows the request that was sent, by the rules above."""
    if before is None:
        return "first"
    if now.prompt_tokens < 0.7 * before.prompt_tokens:
        return "cut"
    tokens = now.prompt_tokens - before.prompt_tokens - before.output_tokens
    size = sum(_bytes_of(message) for message in added)
    if not size / 8 - 32 * len(added) <= tokens <= size + 32 * len(added):
        return "impossible"
    if reply is not None and before.output_tokens < _bytes_of(reply) / 16 - 32:
        return "impossible"
    if now.cache_read_tokens == 0:
        return "cold" if has_cached else "sound"
    missing = before.prompt_tokens - now.cache_read_tokens
    return "rewritten" if missing > CACHE_SLACK else "between" if missing < -CACHE_SLACK else "sound"


def _bytes_of(message: Message) -> int:
    texts = [message.text, *(text for call in message.tool_calls for text in (call.name, call.arguments))]
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def replay(name: str, messages: Iterable[Message], calibration: Calibration, window: int = 0) -> Replay:
    """Return the errors of the meter on one recorded chat; `window` is 0 when it is a guess."""
    counter, quarter = MessageCounter(), MessageCounter(chars4)
    meter = ContextMeter(counter, calibration)
    meter.window, meter.assumed_window = window, window or _ASSUMED
    view, before, start, has_cached, cuts, cut = View(), None, 0, False, 0, False
    system: Message | None = None
    quarters, requests, taken_back = 0, list[Request](), list[float]()
    prompts: list[tuple[int, int]] = []  # (messages, tokens reported) of the sound requests since the last cut
    for message in messages:
        if message.role == "system" and not view.messages:
            meter.set_fixed_part(message, ())
            system = message
            quarters += quarter.message(message)
            continue
        message = meter.counted(message)
        usage = message.usage if message.role == "assistant" else None
        if usage is not None and usage.prompt_tokens:
            reply = view.messages[start - 1] if before is not None else None
            kind = classify(before, usage, view.messages[start:], has_cached, reply)
            cold = meter.calibration.count(meter.estimated_prompt(view), messages=len(view.messages)).tokens
            first = (
                calibration.count(meter.estimated_prompt(view), messages=len(view.messages))
                if calibration.weight
                else None
            )
            idle = None
            if before is not None and not cuts:
                idle = _after_idle_count(ContextMeter(counter, calibration), system, view, start, before)
            counts = meter.count(view), cold, first, idle, quarters
            requests.append(Request(name, kind, usage.prompt_tokens, *counts, cuts, cut))
            if kind == "cut":
                view = _with_summary(meter, view, start, usage)
            estimated, prompt = meter.estimated_prompt(view), view
            view = append(view, message)
            meter.learn(usage, estimated, view)
            has_cached = has_cached or usage.cache_read_tokens > 0
            before, start, cut = usage, len(view.messages), kind == "cut"
            cuts += cut
            prompts = [] if kind not in ("sound", "first") else prompts
            taken_back += _take_back(meter, prompt, prompts)
            prompts.append((len(prompt.messages), usage.prompt_tokens))
        else:
            view = append(view, message)
        quarters += quarter.message(message)
    return Replay(tuple(requests), tuple(taken_back), meter.calibration)


def _after_idle_count(meter: ContextMeter, system: Message | None, view: View, start: int, before: Usage) -> Count:
    """Return the idle count of a chat without any provider report, after one of its first messages."""
    meter.window, meter.assumed_window = 0, _ASSUMED
    if system is not None:
        meter.set_fixed_part(system, ())
    next_message = meter.counted(Message(id="next", role="user", content="."))
    known = append(with_messages(view, view.messages[:start]), next_message)
    meter.take_provider_count(before.prompt_tokens + before.output_tokens + next_message.tokens, known)
    return meter.count(view)


def _with_summary(meter: ContextMeter, view: View, start: int, usage: Usage) -> View:
    """Return the view that was probably sent after a compaction: one message of the reported size, and the new ones."""
    new = view.messages[start:]
    missing = usage.prompt_tokens - meter.measure(new).tokens
    tokens = max(1, round(missing / meter.calibration.ratio))
    return with_messages(view, (Message(id=f"cut-{start}", role="user", content="", tokens=tokens), *new))


def _take_back(meter: ContextMeter, view: View, prompts: Sequence[tuple[int, int]]) -> Iterator[float]:
    """Yield the error of counting the prompt of the middle request between the last cut and here."""
    if len(prompts) % 5 == 4:
        messages, reported = prompts[len(prompts) // 2]
        yield abs(meter.measure(view.messages[:messages]).tokens / reported - 1)


def half_of(session: str) -> int:
    """Return the half that a session (folder/name) belongs to."""
    return zlib.crc32(session.encode()) % 2


def read_sessions(paths: Iterable[Path]) -> Iterator[tuple[str, tuple[Message, ...]]]:
    """Yield (folder/name, messages) of the transcripts that carry usage."""
    for path in paths:
        messages = read_bytes(path.read_bytes().split(b"\n"), path.name).messages
        if any(message.usage is not None and message.usage.prompt_tokens for message in messages):
            yield f"{path.parent.name}/{path.stem}", messages


def replay_all(paths: Sequence[Path], model: str, *, fresh: bool = False, half: int | None = None) -> list[Replay]:
    """Return the replay of each file; the calibration of one is passed to the next in its folder."""
    done = []
    wanted = (session for session in read_sessions(paths) if half is None or half_of(session[0]) == half)
    for _, sessions in groupby(wanted, key=lambda session: session[0].partition("/")[0]):
        calibration = Calibration.for_model(model)
        for name, messages in sessions:
            done.append(replay(name, messages, Calibration.for_model(model) if fresh else calibration))
            calibration = done[-1].calibration
    return done


def with_hidden_prompt(messages: Iterable[Message], tokens: int, grows: int = 0) -> Iterator[Message]:
    """Yield the messages with `tokens` added to every report, and `grows` more from the fourth report on."""
    number = 0
    for message in messages:
        usage = message.usage
        if usage is None or not usage.prompt_tokens:
            yield message
            continue
        number += 1
        hidden = tokens + (grows if number >= _GROWS_AT else 0)
        read, written, fresh = usage.cache_read_tokens, usage.cache_write_tokens, usage.input_tokens
        if grows and number == _GROWS_AT and read:
            read, written = tokens, written + read + grows  # the text after the new part is not in the cache
        elif read:
            read += hidden
        elif written:
            written += hidden
        else:
            fresh += hidden
        told = {"input_tokens": fresh, "cache_read_tokens": read, "cache_write_tokens": written}
        yield with_changes(message, usage=msgspec.structs.replace(usage, **told))


def later_starts(name: str, messages: Sequence[Message]) -> Iterator[tuple[str, tuple[Message, ...]]]:
    """Yield the chat, and chats of a few requests that begin in its middle, without reports on earlier messages.

    None starts after a cut, because the recording does not show the messages sent from there on.
    """
    yield name, tuple(messages)
    places = list[int]()
    for place, one in enumerate(messages):
        if one.usage is not None and one.usage.prompt_tokens:
            if places and one.usage.prompt_tokens < 0.7 * messages[places[-1]].usage.prompt_tokens:  # type: ignore[union-attr]
                break
            places.append(place)
    for number in range(_EVERY, len(places) - 1, _EVERY):
        start, end = places[number], places[min(number + _LENGTH, len(places)) - 1]
        unreported = (with_changes(one, usage=None) for one in messages[:start])
        yield f"{name}@{number}", (*unreported, *messages[start : end + 1])


def replay_hidden(
    paths: Sequence[Path], model: str, tokens: int, *, grows: int = 0, window: int = 0, taught: Taught = "fresh"
) -> list[Replay]:
    """Replay all chats, and those that start later, with `tokens` added to every report."""
    done = []
    for _, sessions in groupby(read_sessions(paths), key=lambda session: session[0].partition("/")[0]):
        calibration = Calibration.for_model(model)
        chats = [chat for session in sessions for chat in later_starts(*session)]
        if taught != "fresh":
            name, lesson = chats.pop(0)
            places = [place for place, one in enumerate(lesson) if one.usage is not None and one.usage.prompt_tokens]
            end = places[min(_LENGTH, len(places)) - 1] + 1
            seen = with_hidden_prompt(lesson[:end], tokens if taught == "taught" else 0)
            calibration = replay(name, seen, calibration, window).calibration
        done += [
            replay(name, with_hidden_prompt(messages, tokens, grows), calibration, window) for name, messages in chats
        ]
    return done


def by_number(replays: Sequence[Replay]) -> dict[str, dict[str, float]]:
    """Return the errors of the sound requests by their number in the chat, and how many lie beyond their bounds."""
    sound = [(number, one) for done in replays for number, one in enumerate(done.requests, 1) if one.kind == "sound"]
    names = {"request 2": (2, 2), "request 3": (3, 3), "request 4": (4, 4), "request 5": (5, 5)}
    rows = {}
    for name, (low, high) in {**names, "later": (6, sys.maxsize), "from request 2 on": (2, sys.maxsize)}.items():
        chosen = [request for number, request in sound if low <= number <= high]
        beyond = sum(not one.count.lower <= one.reported <= one.count.upper for one in chosen)
        rows[name] = percentiles(one.error for one in chosen) | {"beyond": beyond}
    return rows


def percentiles(errors: Iterable[float]) -> dict[str, float]:
    """Return number, p50, p95, p99 and maximum, in percent."""
    values = sorted(errors)
    if not values:
        return {"n": 0}
    at = {f"p{share}": values[min(len(values) - 1, share * len(values) // 100)] for share in (50, 95, 99)}
    return {"n": len(values)} | {name: round(100 * value, 3) for name, value in (at | {"max": values[-1]}).items()}


def summarise(replays: Sequence[Replay]) -> dict[str, dict[str, float]]:
    """Return the rows of the table."""
    requests = [request for done in replays for request in done.requests]
    sound = [request for request in requests if request.kind == "sound"]
    rows = {"sound requests": percentiles(request.error for request in sound)}
    whole = [request for request in sound if not request.cuts]
    rows["- by chars/4"] = percentiles(abs(request.chars4 / request.reported - 1) for request in whole)
    rows["- estimated, no anchor"] = percentiles(abs(request.cold / request.reported - 1) for request in whole)
    new = [(request.unreported, request.reported) for request in whole if request.unreported is not None]
    rows["- nothing reported in this chat"] = percentiles(abs(count.tokens / true - 1) for count, true in new)
    rows["- of these beyond its bounds"] = {"n": sum(not count.lower <= true <= count.upper for count, true in new)}
    idle = [(r.idle, r.reported) for r in whole if r.idle is not None and r.unreported is not None]
    rows["- counted while the chat was idle"] = percentiles(abs(count.tokens / true - 1) for count, true in idle)
    rows["- right after a cut"] = percentiles(request.error for request in sound if request.after_cut)
    rows["reverted"] = percentiles(error for done in replays for error in done.taken_back)
    for name, kinds in (("as recorded", ("sound", "cold", "rewritten")), ("every request", _KINDS[:-2])):
        chosen = [request for request in requests if request.kind in kinds]
        rows[name] = percentiles(request.error for request in chosen)
        outside = [r for r in chosen if not r.count.lower <= r.reported <= r.count.upper]
        rows[f"- of {name} beyond its bounds"] = {"n": len(outside)}
    for kind in ("first", "cold", "between", "rewritten", "impossible", "cut"):
        rows[kind] = percentiles(request.error for request in requests if request.kind == kind)
    for name in ("lower", "upper"):
        beyond = [r for r in sound if (r.count.lower > r.reported if name == "lower" else r.count.upper < r.reported)]
        rows[f"- beyond the {name} bound"] = {"n": len(beyond)}
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="claude-3-5-sonnet", help="whose start ratio to begin with")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--hidden", type=int, nargs="+", metavar="N", help="tokens that every report has more")
    parser.add_argument("--grows", type=int, default=0, metavar="N", help="by how many that grows at the fourth")
    parser.add_argument("--window", type=int, default=200_000, metavar="N", help="of the model, 0 = not known")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    files = options.files or sorted(RECORDED.glob("*/*.jsonl"))
    if options.hidden:
        _print_hidden(files, options)
        return
    replays = replay_all(files, options.model, fresh=options.fresh, half=options.half)
    if not replays:
        sys.exit("bench_counting: no transcript carries usage; name files, or put ../shared beside the checkout")
    tables = {done.requests[0].file: summarise([done]) for done in replays} | {"all": summarise(replays)}
    if options.json:
        print(json.dumps(tables))
        return
    print(f"{'error in %':40}{'requests':>9}{'p50':>9}{'p95':>9}{'p99':>9}{'max':>9}")
    for file, rows in tables.items():
        for name, row in rows.items():
            if file == "all" or name == "sound requests":
                cells = "".join(f"{row[key]:9.2f}" for key in ("p50", "p95", "p99", "max") if key in row)
                print(f"{name if file == 'all' else file:40.39}{int(row['n']):9}{cells}")


def _print_hidden(files: Sequence[Path], options: argparse.Namespace) -> None:
    tables = {
        f"{tokens:,} hidden, {taught}": by_number(
            replay_hidden(files, options.model, tokens, grows=options.grows, window=options.window, taught=taught)
        )
        for tokens in options.hidden
        for taught in get_args(Taught)
    }
    if options.json:
        print(json.dumps(tables))
        return
    print(f"{'error in %':40}{'requests':>9}{'p50':>9}{'p95':>9}{'p99':>9}{'max':>9}{'beyond':>9}")
    for table, rows in tables.items():
        print(table)
        for name, row in rows.items():
            cells = "".join(f"{row[key]:9.2f}" for key in ("p50", "p95", "p99", "max") if key in row)
            print(f"  {name:38}{int(row['n']):9}{cells}{int(row['beyond']):9}")


if __name__ == "__main__":
    main()
