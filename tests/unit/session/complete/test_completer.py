"""Completion in one editor: prompts, one request at a time, caching, truncation, and every failure (R-256 … R-261)."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing as closing

import pytest

from codecompanion.session.complete.completer import Completer
from tests.providers.chat.answers import reply
from tests.providers.chat.server import ChatServer
from tests.providers.completion.server import FillServer
from tests.providers.loopback.answers import failure, silence
from tests.unit.session.complete.conftest import NoProjects, code


def texts(found):
    return [item.text for item in found.items]


async def one(completer: Completer, *asked):
    async with closing(completer):
        return [await completer.complete(request) for request in asked]


async def test_a_suggestion_has_its_model_and_duration(make_completer):
    async with FillServer(["foo()\n"]) as server:
        [found] = await one(make_completer(url=server.address), code())
        assert (texts(found), found.model, found.why, found.failed) == (["foo()"], "qwen2.5-coder", "", False)
        assert found.ms > 0
        body = server.requests[0].json
        assert body["prompt"] == "<|fim_prefix|>x = <|fim_suffix|>\n<|fim_middle|>"
        assert body["options"] == {
            "num_predict": 128, "temperature": 0.1, "stop": ["<|endoftext|>", "<file_sep>", "\n\n\n"],
        }  # fmt: skip


async def test_imports_above_the_window_are_in_the_prompt(make_completer):
    """R-257: the imports come from `head`."""
    async with FillServer(["1"]) as server:
        request = code("y" * 7_999 + "\nx = |", head="import os\n" + "z = 1\n" * 100)
        await one(make_completer(url=server.address), request)
        assert server.requests[0].json["prompt"].startswith("<|fim_prefix|>import os\nyyy")


IMPORTS = {
    "lua": 'local a, b = require("a"), require("b")\n',
    "rs": "use std::{\n    fmt,\n    io::{self, Read},\n};\npub use crate::foo::Bar;\n",
    "go": 'import (\n\t"context"\n\n\tm "math"\n)\n',
    "c": '#include <stdio.h>\n#include "local.h"\n',
    "cpp": "#include <vector>\nusing std::string;\n",
    "java": "import java.util.List;\nimport static java.lang.Math.*;\n",
    "rb": 'require "json"\nrequire_relative "../lib/x"\n',
    "sh": 'source ./lib.sh\n. "$(dirname "$0")/common.sh"\n',
    "js": 'import { a,\n  b } from "./x";\nconst fs = require("fs")\n',
    "tsx": 'import React from "react"\nimport type { T } from "./t"\n',
}


@pytest.mark.parametrize("ending", IMPORTS)
async def test_imports_of_every_language_are_in_the_prompt(make_completer, ending):
    """R-257: end to end, with an editor's request for a small file whose top is above its window."""
    head = IMPORTS[ending] + "x\n" * 60
    async with FillServer(["1"]) as server:
        request = code("y" * 7_999 + "\nx = |", head=head, path=f"src/main.{ending}")
        await one(make_completer(url=server.address), request)
        assert server.requests[0].json["prompt"].startswith(f"<|fim_prefix|>{IMPORTS[ending]}yyy")


async def test_an_endpoint_that_adds_the_tokens_gets_prefix_and_suffix(make_completer):
    async with FillServer(["1"]) as server:
        await one(
            make_completer(url=server.address, endpoint="llamacpp"), code(before="a <|fim_prefix|> = ", after="\n")
        )
        body = server.requests[0].json
        assert (body["input_prefix"], body["input_suffix"]) == ("a <|fim_prefix|  = ", "\n")


async def test_a_model_without_a_family_continues_the_text_or_gets_the_suffix(make_completer):
    """R-259; an endpoint that accepts a suffix knows where to put it."""
    async with FillServer(["1", "2"]) as server:
        await one(make_completer(url=server.address, endpoint="completions", model="granite"), code())
        await one(make_completer(url=server.address, model="granite"), code())
        only, apart = (received.json for received in server.requests)
        assert (only["prompt"], only["stop"]) == ("x = ", ["\n\n", "```"])
        assert (apart["prompt"], apart["suffix"], apart["options"]["stop"]) == ("x = ", "\n", ["\n\n\n"])


async def test_configured_tokens_take_precedence_over_a_familys(make_completer):
    """R-260: the table can be configured."""
    tokens = {"prefix": "[P]", "suffix": "[S]", "middle": "[M]", "eot": "[E]"}
    async with FillServer(["1[E]2"]) as server:
        [found] = await one(make_completer(url=server.address, tokens=tokens), code("a[M] = |\n"))
        assert texts(found) == ["1"]
        body = server.requests[0].json
        assert body["prompt"] == "[P]a[M  = [S]\n[M]"
        assert body["options"]["stop"][0] == "[E]"
    [wrong] = await one(make_completer(tokens={"prefix": "[P]", "suffix": "", "middle": "[M]"}), code())
    assert "completion.tokens" in wrong.why


async def test_an_identical_prompt_is_sent_once(make_completer):
    async with FillServer(["foo()", "bar()"]) as server:
        first, again, other = await one(make_completer(url=server.address), code(), code(), code("y = |\n"))
        assert (texts(first), texts(again), texts(other)) == (["foo()"], ["foo()"], ["bar()"])
        assert (first.cached, again.cached) == (False, True)
        assert len(server.requests) == 2


async def test_an_empty_result_is_cached_except_for_manual_requests(make_completer):
    async with FillServer(["  \n", "foo()"]) as server:
        nothing, kept, asked = await one(make_completer(url=server.address), code(), code(), code(manual=True))
        assert (nothing.items, nothing.why, nothing.failed) == ((), "", False)
        assert (kept.items, kept.cached) == ((), True)
        assert texts(asked) == ["foo()"]


async def test_several_suggestions_differ_and_later_ones_are_warmer(make_completer):
    async with FillServer(["a()", "a()", "b()"]) as server:
        [found] = await one(make_completer(url=server.address), code(count=3))
        assert texts(found) == ["a()", "b()"]
        warmth = [received.json["options"]["temperature"] for received in server.requests]
        assert warmth == sorted(set(warmth))


async def test_a_single_line_suggestion_stops_at_its_end(make_completer):
    async with FillServer(["a()\nb()"]) as server:
        [found] = await one(make_completer(url=server.address, multi_line=False), code())
        assert texts(found) == ["a()"]
        assert server.requests[0].json["options"]["stop"][-1] == "\n"


async def test_a_newer_request_cancels_the_older_one(make_completer):
    """One at a time: the older one's connection is closed, and it returns nothing."""
    async with FillServer([silence(), "new()"]) as server, closing(make_completer(url=server.address)) as completer:
        older = asyncio.ensure_future(completer.complete(code(id=1)))
        await server.wait_until(lambda: len(server.requests) == 1)
        newer = await completer.complete(code("y = |\n", id=2))
        assert texts(newer) == ["new()"]
        gone = await older
        assert (gone.items, gone.why, gone.failed) == ((), "", False)
        await server.wait_until(lambda: server.requests[0].aborted)


@pytest.mark.parametrize("of", [0, 7])
async def test_a_request_can_be_cancelled(make_completer, of):
    async with FillServer([silence()]) as server, closing(make_completer(url=server.address)) as completer:
        running = asyncio.ensure_future(completer.complete(code(id=7)))
        await server.wait_until(lambda: len(server.requests) == 1)
        completer.cancel(of)
        assert (await running).items == ()
        await server.wait_until(lambda: server.requests[0].aborted)


async def test_cancelling_an_unknown_request_does_nothing(make_completer):
    async with FillServer() as server, closing(make_completer(url=server.address)) as completer:
        server.script = ["a()"]
        completer.cancel()
        running = asyncio.ensure_future(completer.complete(code(id=7)))
        completer.cancel(6)
        assert texts(await running) == ["a()"]
        completer.cancel(7)


async def test_the_caller_may_go_away(make_completer):
    async with FillServer([silence()]) as server, closing(make_completer(url=server.address)) as completer:
        running = asyncio.ensure_future(completer.complete(code()))
        await server.wait_until(lambda: len(server.requests) == 1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await server.wait_until(lambda: server.requests[0].aborted)


async def test_two_editors_do_not_disturb_each_other(make_completer):
    async with (
        FillServer([silence(), "b()"]) as server,
        closing(make_completer(url=server.address)) as one_editor,
        closing(make_completer(url=server.address)) as other,
    ):
        waiting = asyncio.ensure_future(one_editor.complete(code()))
        await server.wait_until(lambda: len(server.requests) == 1)
        assert texts(await other.complete(code())) == ["b()"]
        assert not waiting.done()
        one_editor.cancel()
        await waiting


async def test_a_failure_is_one_sentence_and_is_not_cached(make_completer):
    async with FillServer([failure(500, "out of memory"), "a()"]) as server:
        failed, found = await one(make_completer(url=server.address), code(), code())
        assert failed.failed
        assert "out of memory" in failed.why
        assert texts(found) == ["a()"]


async def test_a_server_whose_model_cannot_fill_in_is_retried_only_manually(make_completer):
    """Each pause would send a useless request; the user may have started another model since."""
    async with FillServer(fills_in=False, runs="/models/smol.gguf") as server:
        completer = make_completer(url=server.address, endpoint="llamacpp")
        first = await completer.complete(code())
        asked = len(server.requests)
        again, looked = await completer.complete(code("y = |\n")), await completer.complete(code(count=0))
        assert len(server.requests) == asked
        server._fills_in, server.script = True, ["a()", "b()"]
        found = await completer.complete(code("y = |\n", manual=True))
        [later] = await one(completer, code("z = |\n"))
    for failed in (first, again, looked):
        assert (failed.failed, failed.stopped, "smol.gguf" in failed.why) == (True, True, True)
    assert (texts(found), found.stopped, found.model) == (["a()"], False, "/models/smol.gguf")
    assert texts(later) == ["b()"]


async def test_without_a_key_no_request_is_sent(make_completer):
    async with FillServer() as server:
        completer = make_completer(
            url=server.address, endpoint="mistral", api_key="NO_SUCH_KEY", model="codestral-latest"
        )
        [found] = await one(completer, code())
        assert found.failed
        assert "NO_SUCH_KEY" in found.why
        assert server.requests == []


async def test_invalid_settings_are_one_sentence(make_completer):
    for changes in ({"adapter": "nobody"}, {"family": "lama"}, {"adapter": "offline"}):
        [found] = await one(make_completer(**changes), code())
        assert found.failed
        assert next(iter(changes.values())) in found.why


async def test_an_internal_error_is_reported_and_answered(make_completer):
    bugs: list[BaseException] = []

    class Broken(NoProjects):
        async def find(self, path: str, cwd: str) -> None:
            raise ZeroDivisionError

    [found] = await one(make_completer(projects=Broken(), bugs=bugs), code())
    assert (found.failed, found.why, len(bugs)) == (True, "An internal error.", 1)


async def test_a_secret_file_is_never_sent(make_completer):
    """R-266."""
    async with FillServer(["a()"]) as server:
        [found] = await one(make_completer(url=server.address), code(path="/home/me/project/.env"))
        assert (found.off, found.items) == (True, ())
        assert ".env" in found.why
        assert server.requests == []


async def test_a_small_window_gets_a_small_prompt(make_completer):
    """A window of 2,048 tokens allows three characters for each token that is not reserved for the reply."""
    async with FillServer(["1"]) as server:
        request = code("x = 1\n" * 3_000 + "x = |" + "\ny = 2" * 1_000)
        await one(make_completer(url=server.address, context_window=2_048), request)
        prompt = server.requests[0].json["prompt"]
        assert 5_500 < len(re.sub(r"<\|\w+\|>", "", prompt)) <= (2_048 - 128) * 3


async def test_a_prompt_too_long_for_the_server_is_shortened_and_sent_again(make_completer):
    """The prompt is shortened once; from then on every prompt fits the server."""
    asked = code("x = 1\n" * 3_000 + "x = |" + "\ny = 2" * 1_000)
    async with FillServer(["1", "2"], window=2_048) as server:
        completer = make_completer(url=server.address, endpoint="llamacpp")
        first, second = await one(completer, asked, code(before=asked.before + "z", after=asked.after))
        assert (texts(first), texts(second)) == (["1"], ["2"])
        assert len(server.requests) == 3
    async with FillServer(window=12) as server:
        [hopeless] = await one(make_completer(url=server.address, endpoint="llamacpp"), asked)
        assert hopeless.failed
        assert len(server.requests) == 2


async def test_the_servers_own_adapter_provides_its_address(make_completer):
    """OLLAMA_HOST, or the key of `adapters.http.mistral`, does not have to be repeated."""
    async with FillServer(["a()", "b()"]) as server:
        ollama = make_completer(adapters={"ollama": {"base_url": server.address}})
        assert texts((await one(ollama, code()))[0]) == ["a()"]
        entry = {"mistral": {"base_url": f"{server.address}/v1", "key": "MY_KEY"}}
        mistral = make_completer(
            endpoint="mistral", model="codestral-latest", adapters=entry, environ={"MY_KEY": "sk-test"}
        )
        assert texts((await one(mistral, code()))[0]) == ["b()"]


async def test_an_adapters_address_and_key_can_be_used(make_completer):
    async with FillServer(["a()"]) as server:
        adapters = {"work": {"base_url": f"{server.address}/v1", "key": "WORK_KEY"}}
        completer = make_completer(
            adapter="work",
            endpoint="mistral",
            model="codestral-latest",
            adapters=adapters,
            environ={"WORK_KEY": "sk-test"},
        )
        [found] = await one(completer, code())
        assert texts(found) == ["a()"]


async def test_a_chat_model_gets_an_instruction_if_configured(make_completer):
    async with ChatServer([reply("```python\nfoo(1)\n```")]) as server:
        adapters = {"work": {"base_url": server.url, "key": "WORK_KEY"}}
        completer = make_completer(
            endpoint="chat", adapter="work", model="test-model", adapters=adapters, environ={"WORK_KEY": "sk-test"}
        )
        [found] = await one(completer, code("x = |\ny = 2\n", path="src/a.py"))
        assert texts(found) == ["foo(1)"]
        order, file = server.requests[0].json["messages"]
        assert "src/a.py" in order["content"]
        assert file["content"] == "x = <cursor/>\ny = 2\n"


async def test_availability_is_reported_without_a_request(make_completer):
    """R-266: `count` 0, as `:CodeCompanion complete status` sends; a running request continues."""
    async with FillServer([silence()]) as server:
        completer = make_completer(url=server.address)
        running = asyncio.ensure_future(completer.complete(code()))
        await server.wait_until(lambda: len(server.requests) == 1)
        fine = await completer.complete(code(count=0))
        assert (fine.why, fine.off, fine.failed) == ("", False, False)
        secret = await completer.complete(code(count=0, path="/home/me/.env"))
        assert (secret.off, secret.why) == (True, ".env may contain secrets")
        assert (len(server.requests), running.done()) == (1, False)
        completer.cancel()
        await running
        await completer.aclose()
    lost = make_completer(adapter="nobody")
    answer = await lost.complete(code(count=0))
    assert answer.failed
    assert "nobody" in answer.why
    await lost.aclose()
