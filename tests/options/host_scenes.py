"""Scenes of a chat with the real host: its requests, questions, notices and files with a given configuration."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any, cast
from unittest.mock import patch

from codecompanion.engine import hello
from codecompanion.session.code.project_indexes import choice_of
from codecompanion.tools import runner
from codecompanion.wire import events, requests
from tests.options.desk import Desk, Given
from tests.options.host import Host, play, steady
from tests.providers.chat.answers import Call, reply
from tests.providers.loopback.answers import Answer, json_answer

SUMMARY = "\n\n".join(f"## {n}. Part {n}\nThe user asked to read big.txt, and it was read." for n in range(1, 10))
WAIT_S = 0.03
OWN = '''
import time

def shout(word: str) -> str:
    """Shout."""
    time.sleep(0.03)
    return word.upper()

def whisper(word: str) -> str:
    """Whisper."""
    return word.lower()

def keep(messages, params, env):
    return None

def shorten(messages, params, env):
    return [env.with_text(m, m.text[:4]) if m.role == "assistant" and m.text[4:] else m for m in messages]
'''
USES_MINE = """
extends = "codecompanion"

[[stage]]
id = "editing"
event = "context_edited"
trigger = { at = 0.1 }
step = [{ use = "mine" }]
"""


def talk(desk: Desk, given: Given) -> Any:
    """Send two short messages."""

    async def act(host: Host) -> Any:
        await host.say("Hello")
        await host.say("How are you? It fails in big.txt", snapshot=host.snapshot(**_seen(host)))
        meter = host.of(events.Meter)[-1]
        ends = [(event.reason, event.error) for event in host.of(events.TurnFinished)]
        told = host.notices(), (meter.window, meter.tokens), steady(str(ends))
        return host.bodies(), host.headers("x-mine"), told

    return play(desk, given, act, [reply("Hi."), reply("Well.")], workspace)


def _seen(host: Host) -> dict[str, Any]:
    path = str(host.work / "big.txt")
    wrong = requests.Diagnostic(path=path, line=2, severity="ERROR", message="pencil is not defined")
    return {"current": path, "cursor": (2, 0), "visible": (1, 10, 20), "diagnostics": (wrong,)}


def workspace(host: Host) -> None:
    """Make a small repository with rules, notes and a large file."""
    work, home = host.work, host.root / "home"
    (work / "sub").mkdir()
    home.mkdir()
    files = {
        "big.txt": "".join(f"line {n} of the large file that tools read\n" for n in range(250)),
        "AGENTS.md": "Always use tabs.",
        "CLAUDE.md": "See @other.md",
        "other.md": "Prefer short names.",
        "mine.md": "Mine: see @other.md",
        "app.py": "def validate(trigger):\n    return trigger > 0\n",
        "app2.py": "pencil = 1\n",
        ".hidden.py": "def validate_hidden(trigger):\n    return trigger\n",
        "sub/inner.py": "def inner():\n    return 1\n",
    }
    config = host.root / "config_dir"
    config.mkdir()
    (config / "mine.py").write_text(OWN)
    for name, text in files.items():
        (work / name).write_text(text)
        os.utime(work / name, (1_700_000_000, 1_700_000_000))
    git = ["git", "-C", str(work), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    (work / ".git" / "info").mkdir(exist_ok=True)


CALLS = {
    "read_file": {"path": "app.py"},
    "file_search": {"pattern": "*.py"},
    "grep_search": {"query": "validate"},
    "code_search": {"query": "validate"},
    "get_diagnostics": {},
    "insert_edit": {"path": "app.py", "old_text": "trigger > 0", "new_text": "trigger > 1"},
    "create_file": {"path": "new.py", "content": "x = 1\n"},
    "delete_file": {"path": "sub/inner.py"},
    "run_command": {"command": "echo $PENCIL $MY_API_KEY; sleep 0.3; echo done"},
    "memory": {"command": "view", "path": "/memories"},
    "recall": {"query": "validate"},
}


def tool(name: str, **arguments: Any) -> Callable[[Desk, Given], Any]:
    """Return the scene in which the model calls a tool once, with these arguments or those in `CALLS`."""
    return _tool(name, json.dumps(arguments or CALLS.get(name, {})))


@cache
def _tool(name: str, arguments: str) -> Callable[[Desk, Given], Any]:
    async def slowly(*given: Any) -> Any:
        await asyncio.sleep(WAIT_S)
        return await look(*given)

    look = runner.look

    def scene(desk: Desk, given: Given) -> Any:
        async def act(host: Host) -> Any:
            if name == "recall":  # it is offered once something was removed
                await host.say("Remember the pencil. " * 400)
                await host.compact()
            with patch.object(runner, "look", slowly):
                await host.say("Do it")
            offered = host.bodies()[-1].get("tools", [])
            results = [steady(event.preview or event.summary) for event in host.of(events.ToolFinished)]
            asked = [(event.name, event.place) for event in host.of(events.ApprovalRequested)]
            sent = [one for one in host.bodies()[-1]["messages"] if one["role"] == "tool"]
            return offered, results, asked, sent

        before = [reply("I do."), reply(SUMMARY)] if name == "recall" else []
        script = [*before, reply(calls=[Call(name, arguments, "call_1")]), reply("Done.")]
        return play(desk, given, act, script, workspace, env={"PENCIL": "pencil-1", "MY_API_KEY": "hidden-2"})

    return scene


def long(desk: Desk, given: Given, prepare: Callable[[Host], None] = workspace) -> Any:
    """Read a large file in each of eight turns."""

    async def act(host: Host) -> Any:
        for turn in range(8):
            await host.say(f"READ number {turn}")
        sizes = [len(json.dumps(body)) for body in host.bodies()]
        models = [body["model"] for body in host.bodies()]
        cleared = [len(event.call_ids) for event in host.of(events.ContextEdited)]
        compacted = [steady(event.summary) for event in host.of(events.Compacted)]
        return sizes, models, cleared, compacted, host.notices()

    return play(desk, given, act, prepare=prepare, default=reads)


def long_with_own_policy(desk: Desk, given: Given) -> Any:
    """Play `long` with the policy `uses_mine`, which comes from a file of the user."""

    def prepare(host: Host) -> None:
        workspace(host)
        policies = host.root / "config_dir" / "policies"
        policies.mkdir()
        (policies / "uses_mine.toml").write_text(USES_MINE)

    return long(desk, given, prepare)


def reads(received: Any) -> Any:
    """Answer like a model that reads a large file on request and otherwise writes a summary."""
    body = received.json
    if body["model"] == "bad-model":
        return reply("No.", finish="content_filter")
    last = body["messages"][-1]
    if last["role"] == "tool":
        return reply("I have read it.")
    if "READ number" in str(last["content"])[:40] and body.get("tools"):
        return reply(calls=[Call("read_file", '{"path": "big.txt"}', f"call_{len(body['messages'])}")])
    return reply(SUMMARY)


def summarised(desk: Desk, given: Given) -> Any:
    """Read files, compact by command and continue; then begin a second chat in the project."""

    async def act(host: Host) -> Any:
        for turn in range(3):
            await host.say(f"READ number {turn}: remember the pencil")
        await host.compact()
        states = [state for state, _ in groupby(event.state for event in host.of(events.State))]
        failures = [steady(event.reason) for event in host.of(events.CompactionFailed)]
        await host.open("second")
        items = [item.label for event in host.of(events.ContextItems) if event.chat == "second" for item in event.items]
        items = sorted(set(items))
        models = [body["model"] for body in host.bodies()]
        return models, states, failures, items, host.notices()

    return play(desk, given, act, prepare=workspace, default=reads)


def talk_priced(desk: Desk, given: Given) -> Any:
    """Talk to a model whose calls cost $0.004 each."""

    async def act(host: Host) -> Any:
        await host.say("Hello")
        await host.say("How are you?")
        return [event.error for event in host.of(events.TurnFinished)], host.notices()

    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    with patch.object(hello, "_price", lambda *_: 0.004):
        return play(desk, given, act, [reply("Hi.", usage=usage), reply("Well.", usage=usage)])


def logged(desk: Desk, given: Given) -> Any:
    """Talk, and count each kind of line in the log."""

    async def act(host: Host) -> Any:
        await host.say("Hello")
        log = host.root / "log"
        return sorted({word for word in ("DEBUG", "INFO") if log.exists() and word in log.read_text()})

    return play(desk, given, act, [reply("Hi.")])


def cut_off(desk: Desk, given: Given) -> Any:
    """Let the model reach its output limit."""

    async def act(host: Host) -> Any:
        await host.say("Hello")
        return host.bodies()

    return play(desk, given, act, [reply("Hi", finish="length"), reply(" there.")])


def attached(desk: Desk, given: Given) -> Any:
    """Attach a file, change it after a message, and send another message."""

    async def act(host: Host) -> Any:
        await host.runtime.handle(requests.Attach(chat="chat", kind="file", path=str(host.work / "app.py")))
        await host.say("Hello")
        (host.work / "app.py").write_text("def validate(trigger):\n    return trigger > 7\n")
        await host.say("And now?")
        return host.bodies()

    return play(desk, given, act, [reply("Hi."), reply("Seven.")], workspace)


def group(desk: Desk, given: Given) -> Any:
    """Choose the group `mine` and say hello."""

    async def act(host: Host) -> Any:
        await host.runtime.handle(requests.ChooseTools(chat="chat", names=("mine",), how="only"))
        await host.say("Hello")
        items = [(item.kind, item.label) for item in host.of(events.ContextItems)[-1].items]
        listed: Any = await host.runtime.handle(requests.ListTools(chat="chat"))
        return host.bodies(), items, str(listed["groups"])

    return play(desk, given, act, [reply("Hi.")])


def summarised_slowly(desk: Desk, given: Given) -> Any:
    """Compact with a model that stays silent for more than a second."""

    def slow(received: Any) -> Any:
        body = received.json
        is_summary = body["messages"][-1]["role"] == "user" and not str(body["messages"][-1]["content"]).startswith("R")
        return reply(SUMMARY[:40], delay_s=1.1, chunk_chars=100) if is_summary else reads(received)

    async def act(host: Host) -> Any:
        await host.say("READ number 1")
        await host.compact()
        return [steady(event.reason) for event in host.of(events.CompactionFailed)]

    return play(desk, given, act, prepare=workspace, default=slow)


def ruled(desk: Desk, given: Given) -> Any:
    """Say hello in a project with rules, and list the rule groups."""

    async def act(host: Host) -> Any:
        await host.say("Hello")
        return host.bodies(), await host.runtime.handle(requests.ListRules(snapshot=host.snapshot()))

    return play(desk, given, act, [reply("Hi.")], workspace)


def asked_once(desk: Desk, given: Given) -> Any:
    """Say hello to a provider, whatever it answers."""

    async def act(host: Host) -> Any:
        await host.say("Hello")
        ends = [steady(event.error) for event in host.of(events.TurnFinished)]
        return host.headers("x-mine"), host.of(events.Meter)[-1].window, ends

    return play(desk, given, act, [reply("Hi.")])


def completed(desk: Desk, given: Given, text: str | Answer = "one()\n  two()\n  three()\n") -> Any:
    """Request code at the cursor."""

    async def act(host: Host) -> Any:
        host.desk.filler.script[:] = [text]
        host.desk.filler.requests.clear()
        ask = requests.CompleteCode(
            path=str(host.work / "app.py"),
            filetype="python",
            before="def validate(trigger):\n    return ",
            after="\n\ndef other():\n    return 1\n",
            line=1,
            column=11,
            cwd=str(host.work),
            manual=True,
            recent=(requests.RecentLines(path=str(host.work / "app2.py"), start=1, end=1),),
        )
        answer: Any = await host.runtime.handle(ask)
        sent = [(one.path, one.headers.get("authorization"), one.body.decode()) for one in host.desk.filler.requests]
        asked = [one.body.decode() for one in host.desk.provider.requests]
        return steady(str(sent)), steady(str(asked)), host.headers("x-mine"), steady(str((answer.items, answer.why)))

    return play(
        desk, given, act, [reply("one()")], workspace, opened=False, env={"FILL_KEY": "pencil", "OTHER_KEY": "no"}
    )


def completed_slowly(desk: Desk, given: Given) -> Any:
    """Request code at the cursor from a server that takes 0.3 s."""
    answer = json_answer({"model": "qwen2.5-coder", "response": "one()", "done": True, "done_reason": "stop"})
    return completed(desk, given, replace(answer, parts=(0.3, *answer.parts)))


def gathered(desk: Desk, given: Given) -> Any:
    """Ask twice about the code of the project, the second time naming a file, then ask something unrelated."""

    async def act(host: Host) -> Any:
        await host.say("#{codebase} Which function validates the trigger for the team standup?")
        services = host.runtime.services
        if services.indexes is not None:  # else it is ready for the next question on some machines only
            index = await services.indexes.of(host.work, choice_of(services.settings.context))
            await index.wait()
        await host.say("What does @big.txt say about validate in our codebase?")
        await host.say("Write a short poem about a caller.")
        return host.bodies(), host.notices()

    def prepare(host: Host) -> None:
        workspace(host)
        (host.work / ".codecompanion").mkdir()
        for name in ("memories", "other"):
            (host.work / ".codecompanion" / f"{name}.md").write_text(f"## [project] Of {name}\n\nUse {name}.\n")
            (host.root / "config_dir" / f"{name}.md").write_text(f"## [user] Mine of {name}\n\nPrefer {name}.\n")
        (host.work / "team.md").write_text("The standup of the team is at nine.\n")
        for n in range(14):
            text = f"def validate_{n}(trigger):\n    return trigger > {n}\n" + "    # the trigger\n" * (n % 5)
            path = host.work / f"part{n}.py"
            path.write_text(text + f"\n\ndef caller_{n}():\n    return validate_{n}({n})\n")
            seconds = time.time() - 86_400 * (400 if n % 2 else 10 * n)
            os.utime(path, (seconds, seconds))

    return play(desk, given, act, prepare=prepare, default=lambda _: reply("I see."))


def served(desk: Desk, given: Given) -> Any:
    """Let the model call a tool of an MCP server."""

    async def act(host: Host) -> Any:
        (host.work / "sub").mkdir(exist_ok=True)
        opened = [one["name"] for one in cast(Any, await host.runtime.handle(requests.ShowMcp(chat="chat")))["servers"]]
        await host.say("Add")
        tools = [one["function"]["name"] for one in host.bodies()[-1].get("tools", [])]
        asked = [event.name for event in host.of(events.ApprovalRequested)]
        results = [steady(event.preview) for event in host.of(events.ToolFinished)]
        return opened, tools, asked, results, host.notices()

    return play(desk, given, act, [reply(calls=[Call("mine__add", '{"one": 1, "other": 2}', "c1")]), reply("Three.")])
