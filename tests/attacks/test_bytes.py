"""Limits on all data from HTTP, MCP and pipes: memory, time, events, tool calls.

Each attack is sent once to a real client. It counts as held off if the client ended with an answer or one sentence,
memory stayed below three times the limit, no piece larger than a slice was decoded at once, and the next request is
answered as usual.
"""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
import pytest

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.completion.client import CompletionClient, settings_of
from codecompanion.adapters.completion.endpoints import CodeRequest, endpoint_named
from codecompanion.adapters.embeddings.http_embedder import HttpEmbedder
from codecompanion.adapters.http import connection as connection_module
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.http.json_requests import JsonRequests
from codecompanion.adapters.openai_chat import tool_deltas
from codecompanion.adapters.registry import make_wire
from codecompanion.adapters.reply_decoder import ReplyDecoder
from codecompanion.adapters.transport import client as client_module
from codecompanion.errors import AdapterError, InputError
from codecompanion.formats.byte_limits import ERROR_BODY, MAX_EVENT_BYTES, MAX_TOOL_CALLS, MB, REPLY, SLICE
from codecompanion.mcp.server_spec import ServerSpec
from codecompanion.mcp.server_types import McpError
from codecompanion.model.embedding import EmbeddingSettings
from codecompanion.web import fetching
from codecompanion.web.fetching import Fetcher
from tests.adapters.conftest import collect
from tests.attacks.byte_server import HONEST
from tests.attacks.conftest import Tally
from tests.attacks.sizes import amount
from tests.mcp.listener import Listener, connected, connection
from tests.patience import PATIENCE_S
from tests.unit.session.fakes import Bench, submit

Case = TypeVar("Case")
Outcome = tuple[str, str]
"""The answer and the error message."""
NUMBERS = itertools.count()
FORMATS = ("chat", "messages", "responses")
KINDS = {"chat": "openai_compatible", "messages": "anthropic", "responses": "openai_responses"}
ENCODINGS = ("plain", "gzip", "deflate", "raw deflate", "old http")
REFUSED = ("brotli", "zstd", "gzip twice", "unknown")
FLOODS = ("header flood", "interim flood", "redirects", "short of its length", "beyond its length")
STREAMED = (
    *("bomb", "endless events", "endless empty events", "endless line", "endless lines", "endless pings"),
    *("dripping pings", "40,000 calls", "calls of 1 MB", "repeated deltas", "deep", "wide", "numbers", "tiny chunks"),
    *FLOODS,
)
WHOLE = ("bomb", "endless line", "deep", "wide", "numbers", "nothing", *FLOODS)
CONSUMERS = ("whole chat", "whole messages", "whole responses", "models", "error", "code", "vectors", "json", "page")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Return the port of the server."""
    command = [sys.executable, "-m", "tests.attacks.byte_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "getproxies", dict)


@pytest.fixture(autouse=True)
def largest(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of the pieces passed to decoders: none may be larger than a slice."""
    sizes = [0]
    feed = ReplyDecoder.feed

    def counted(self: ReplyDecoder, piece: bytes) -> Any:
        sizes[0] = max(sizes[0], len(piece))
        return feed(self, piece)

    monkeypatch.setattr(ReplyDecoder, "feed", counted)
    # An endless stream of tiny events takes minutes to reach the real limit of 600 MB; at a lower limit the code is the
    # same.
    small = msgspec.structs.replace(REPLY, wire_bytes=MB, decoded_bytes=MB)
    monkeypatch.setattr(connection_module, "REPLY", small)
    return sizes


def address(port: int, attack: str, kind: str, encoding: str) -> str:
    return f"http://127.0.0.1:{port}/{quote(f'{attack}.{kind}.{encoding}.{next(NUMBERS)}', safe='')}/v1"


def adapter(url: str, kind: str, **more: Any) -> HttpAdapter:
    # With an address for its limits no other one is tried, so that the chat's request gets the attack.
    more = {"idle_timeout_s": 0.3 if "pings" in url else 0.0, "limits_path": "/v1/props", **more}
    settings = AdapterSettings(name="a", kind=KINDS[kind], base_url=url, model="m", max_retries=0, **more)  # type: ignore[arg-type]
    return HttpAdapter(settings, make_wire(settings, lambda sha: b""), read_key=lambda _: "")


@asynccontextmanager
async def consumer(kind: str, url: str) -> AsyncIterator[Callable[[], Any]]:
    """Return a function that sends a request and returns the answer; it keeps its client for the next request."""
    match kind:
        case (
            "models" | "error" | "chat" | "messages" | "responses" | "whole chat" | "whole messages" | "whole responses"
        ):
            made: Any = adapter(url, kind.removeprefix("whole ") if kind not in ("models", "error") else "chat")

            async def ask() -> str:
                if kind in ("models", "error"):
                    return str(await made.list_models())
                got = await collect(made)
                if got.error is not None:
                    raise got.error
                return got.text
        case "code":
            settings = settings_of(endpoint_named("llamacpp"), None, base_url=url)
            made = CompletionClient(endpoint_named("llamacpp"), settings, lambda _: "")

            async def ask() -> str:
                wanted = CodeRequest(model="m", prompt="a", max_tokens=10, temperature=0.1)
                return str((await made.ask(wanted, PATIENCE_S)).text)
        case "vectors":

            async def no_wait(seconds: float) -> None:
                pass

            made = HttpEmbedder(EmbeddingSettings(url=url, model="m"), read_key=lambda _: "", sleep=no_wait)

            async def ask() -> str:
                return str(await made.embed(["a"]))
        case "json":
            made = JsonRequests(AdapterSettings(name="a", kind="chatgpt"), url, whose="the server")

            async def ask() -> str:
                return str(await made.ask("POST", "x", headers={}, content=b"{}"))
        case _:
            made = None

            async def ask() -> str:
                return (await Fetcher(refuse=lambda _: "").fetch(url)).body.decode()

    try:
        yield ask
    finally:
        if made is not None:
            await made.aclose()


async def asked(ask: Callable[[], Any]) -> Outcome:
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await ask(), ""
    except TimeoutError:
        return "", "unexpected error: it never ended"
    except (AdapterError, InputError) as error:
        return "", str(error)


async def attacked(port: int, attack: str, kind: str, encoding: str, largest: list[int]) -> list[str]:
    """Return a description of each limit or answer that the attack broke."""
    limit = ERROR_BODY.decoded_bytes if kind == "error" else MAX_EVENT_BYTES
    failures = []
    async with consumer(kind, address(port, attack, kind, encoding)) as ask:
        tracemalloc.start()
        answer, said = await asked(ask)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if peak > 3 * limit + 3 * MB:
            failures.append(f"{peak / MB:.0f} MB of memory, with a limit of {limit / MB:.1f} MB")
        if largest[0] > SLICE:
            failures.append(f"{largest[0]:,} bytes were decoded at once")
        if (
            (attack, kind) != ("nothing", "page")
            and not answer
            and (not said or len(said) > 1_500 or "unexpected error" in said or "\n" in said)
        ):
            failures.append(f"no sentence: {said[:300]!r}")
        answer, said = await asked(ask)
        honest = kind not in ("json", "models", "vectors", "error")
        if attack != "redirects" and (said or (honest and HONEST not in answer)):
            failures.append(f"not usable afterwards: {answer[:100]!r} {said[:300]!r}")
    return [f"{attack} × {kind} × {encoding}: {failure}" for failure in failures]


def chosen(cases: list[Case]) -> list[Case]:
    """Return as many cases as this run tries, spread over all of them."""
    return cases[:: len(cases) // amount(8, full=len(cases))]


async def warmed_up(port: int) -> None:
    """Import the modules of the first request, so that their memory does not count as part of an attack."""
    for kind in (*FORMATS, *CONSUMERS):
        async with consumer(kind, address(port, "nothing", kind, "plain")) as ask:
            await asked(ask)
            await asked(ask)


async def test_streams(port: int, largest: list[int], tally: Tally) -> None:
    await warmed_up(port)
    cases = [(attack, kind, "plain") for attack in STREAMED for kind in FORMATS]
    cases += [("bomb", kind, encoding) for encoding in (*ENCODINGS, *REFUSED) for kind in FORMATS]
    cases += [("endless events", kind, encoding) for encoding in ENCODINGS for kind in FORMATS]
    cases = chosen(cases)
    failures = [line for case in cases for line in await attacked(port, *case, largest)]
    tally(
        "bytes: replies × encodings", tried=len(cases), held=len(cases) - len({line.split(":")[0] for line in failures})
    )
    assert not failures, "\n".join(failures)


async def test_bodies(port: int, largest: list[int], tally: Tally) -> None:
    await warmed_up(port)
    cases = [(attack, kind, "plain") for attack in WHOLE for kind in CONSUMERS]
    cases += [("bomb", kind, encoding) for encoding in (*ENCODINGS, *REFUSED) for kind in CONSUMERS]
    cases = chosen(cases)
    failures = [line for case in cases for line in await attacked(port, *case, largest)]
    tally(
        "bytes: bodies × consumers", tried=len(cases), held=len(cases) - len({line.split(":")[0] for line in failures})
    )
    assert not failures, "\n".join(failures)


async def test_the_text_before_a_limit_is_kept_and_the_chat_continues(tmp_path: Path, port: int) -> None:
    """Of a reply with 40,000 tool calls none runs, one sentence gives the reason, and the next message is answered."""
    made: Any = adapter(address(port, "40,000 calls", "chat", "plain"), "chat")
    bench = Bench(tmp_path, made)
    session = await bench.open()
    session.submit(submit("hello"))
    await bench.idle(session)
    texts = [message.text for message in session.log.view.messages]
    assert any(HONEST in text for text in texts)
    assert not any(message.tool_calls for message in session.log.view.messages)
    assert f"the reply has more than {MAX_TOOL_CALLS} tool calls" in str(bench.events)
    session.submit(submit("again", 2))
    await bench.idle(session)
    assert session.log.view.messages[-1].text == HONEST
    assert bench.bugs == []
    await made.aclose()


async def test_an_honest_reply_of_many_tiny_deltas_arrives(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits do not affect it: every delta arrives, in far fewer events."""
    monkeypatch.setattr(connection_module, "REPLY", REPLY)
    count = amount(20_000, full=500_000)
    for kind in FORMATS:
        made = adapter(address(port, f"{count} deltas", kind, "plain"), kind)
        got = await collect(made)
        assert got.error is None
        assert len(got.text) == count
        assert len(got.events) < count / 10
        await made.aclose()


async def test_a_head_that_drips_ends(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte counts as activity, but the time limit applies to the whole response head."""
    monkeypatch.setattr(client_module, "_SENDING_LIMIT_S", 0.1)
    url = address(port, "dripping head", "chat", "plain")
    made = adapter(url, "chat", idle_timeout_s=0.3, connect_timeout_s=0.3)
    got = await collect(made)
    assert "sent nothing for 0.3 s" in str(got.error)
    monkeypatch.undo()
    assert (await collect(made)).text == HONEST
    await made.aclose()


async def test_repeated_deltas_are_parsed_once(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each delta repeats the id and the name; the decoder does not parse the arguments again for each of them."""
    parsed = [0]
    judge = tool_deltas.is_json_object

    def counted(text: str) -> bool:
        parsed[0] += len(text)
        return judge(text)

    monkeypatch.setattr(tool_deltas, "is_json_object", counted)
    made = adapter(address(port, "repeated deltas", "chat", "plain"), "chat")
    await collect(made)
    await made.aclose()
    assert parsed[0] <= 20_000 * 6


MCP = ("header flood", "interim flood", "redirects", "short of its length", "bomb", "endless line", "deep", "wide")


@pytest.mark.slow("mutated answers, each to a client of its own")
async def test_mcp_over_http(port: int, tally: Tally) -> None:
    cases = chosen([(attack, "plain") for attack in MCP] + [("bomb", encoding) for encoding in (*ENCODINGS, *REFUSED)])
    held = 0
    for attack, encoding in cases:
        url = address(port, attack, "mcp", encoding)
        start_s = 5 if attack == "redirects" else PATIENCE_S  # the server reports only the first one
        spec = ServerSpec(name="odd", url=url, start_timeout_s=start_s, timeout_s=PATIENCE_S)
        one = connection(spec, Listener())
        tracemalloc.start()
        with pytest.raises(McpError) as caught:
            await one.open()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        await one.close()
        assert peak < 3 * MAX_EVENT_BYTES, (attack, encoding, peak)
        assert len(str(caught.value)) < 1_000
        held += 1
    tally("bytes: MCP over HTTP", tried=len(cases), held=held)


async def test_mcp_over_stdio(tally: Tally) -> None:
    """A message with an endless number of values is rejected before it is parsed; the log is not flooded either."""
    listener = Listener()
    async with connected("wide", listener=listener) as server:
        tracemalloc.start()
        with pytest.raises(McpError, match="100,000 values"):
            await server.call("echo", {"text": "a"}, PATIENCE_S)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 3 * MAX_EVENT_BYTES
    tally("bytes: MCP over stdio", tried=1, held=1)
