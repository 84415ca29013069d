"""npm `@copilotkit/aimock`: an independent fake of Chat Completions, Responses and Messages.

One set of fixtures answers all three formats (the first fixture whose `match` fits, with `userMessage` as a substring
of the newest user message), so one test covers three wire formats. Fixtures are set and read through the control API
(`/__aimock/…`). Their format is in the package's README and `skills/write-fixtures/SKILL.md`. With `--strict`, a
request without a matching fixture is a 503, and a tool turn without its thinking block is a 400.

Differences from real providers (1.43.0, compared event by event with the traffic that our adapter tests replay):

- All: usage is 0 (Chat: a quarter of the characters) unless a fixture names it, without cache and reasoning figures. No
  endpoint counts tokens, nothing compacts (`context_management`, `compaction` are ignored). A wrong key is refused as
  OpenAI refuses it, on `/v1/messages` too.
- Chat: reasoning comes as `reasoning_content`, in a chunk before the one with the role.
- Responses: most events have no `sequence_number`; ids have a hyphen (`msg-…`, `fc-…`, `rs-…`, `resp-…`); the response
  object echoes nothing of the request; `encrypted_content` comes without being asked for, and only with `.done`.
- Messages: no `ping`; `message_start` has the final `output_tokens`; `message_delta` lacks the prompt, which real ones
  repeat; one made-up signature for every thinking block; the 503 of `--strict` lacks `"type": "error"`.
- A cut stream (`truncateAfterChunks`) needs `latency`, else the connection is reset before its headers have left.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.peers.server_process import ServerProcess, call

# No message matches this; without any fixture the program would not start.
_NEVER = {"fixtures": [{"match": {"userMessage": "\u0001"}, "response": {"content": "-"}}]}


class AiMock:
    """The running server; `url` without `/v1`."""

    def __init__(self, program: Path, folder: Path, key: str) -> None:
        """Start the server. Its log is written to `folder`; requests must carry `key`."""
        self.key, self.url = key, ""
        fixtures = folder / "fixtures.json"
        fixtures.write_text(json.dumps(_NEVER), encoding="utf-8")
        argv = ["node", str(program), "--port", "0", "--fixtures", str(fixtures), "--strict", "--validate-on-load"]
        self.process = ServerProcess("aimock", argv, env={"AIMOCK_API_KEYS": key}, log=folder / "aimock.log")
        self.process.wait_until(self._find_url, limit_s=30)

    def _find_url(self) -> bool:
        found = re.search(r"listening on (http://\S+)", self.process.read_log())
        self.url = found[1] if found else ""
        return bool(found)

    def answer(self, *fixtures: dict[str, Any]) -> None:
        """Append fixtures to the existing ones."""
        call(f"{self.url}/__aimock/fixtures", key=self.key, body={"fixtures": list(fixtures)})

    def forget(self) -> None:
        """Drop all fixtures and recorded requests."""
        call(f"{self.url}/__aimock/reset", key=self.key, body={})

    def requests(self) -> list[dict[str, Any]]:
        """Return the received requests as the server understood them, always in the shape of Chat Completions.

        Bodies over 64 KB are replaced by a note; `Tap` has the complete bodies.
        """
        entries = call(f"{self.url}/__aimock/journal", key=self.key)
        return [entry["body"] for entry in entries]


def usage(prompt: int, output: int) -> dict[str, int]:
    """Return token usage for all wire formats."""
    return {"input_tokens": prompt, "output_tokens": output, "prompt_tokens": prompt, "completion_tokens": output}


def text(when: str, content: str, **options: Any) -> dict[str, Any]:
    """Return a fixture that answers a message containing `when` with text."""
    return _fixture(when, {"content": content}, options)


def tools(when: str, *calls: tuple[str, dict[str, Any]], **options: Any) -> dict[str, Any]:
    """Return a fixture that answers with tool calls, until the turn has a result."""
    wanted = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return _fixture(when, {"toolCalls": wanted}, {"match": {"hasToolResult": False}} | options)


def failure(when: str, status: int, message: str, kind: str, code: str = "", **options: Any) -> dict[str, Any]:
    """Return a fixture that answers with an error; `retryAfter` in seconds, `code` for the OpenAI formats."""
    error = {"message": message, "type": kind} | ({"code": code} if code else {})
    return _fixture(when, {"error": error, "status": status}, options)


_BESIDE_THE_RESPONSE = {"latency", "chunkSize", "truncateAfterChunks", "chaos"}


def _fixture(when: str, response: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the fixture; options are fields of the response (`usage`, `reasoning` …), of the fixture, or `match`."""
    beside = {name: value for name, value in options.items() if name in _BESIDE_THE_RESPONSE}
    inside = {name: value for name, value in options.items() if name not in _BESIDE_THE_RESPONSE | {"match"}}
    return {"match": {"userMessage": when} | options.get("match", {}), "response": response | inside, **beside}
