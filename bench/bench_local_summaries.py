"""Summaries by a real local model: requested in the chat itself, by transcript, and with a draft in fewer sections.

Run `make test-local-model` first. Then

    python -m bench.bench_local_summaries [--window 8192] [--chats 5] [--tokens 220] [--chars 7000] [--threads 2]

Each chat is read once, so that the server's cache has it. Then its model is asked three times: in the chat itself, as
in normal use; in the chat with four sections and a draft written by code; and by transcript. Tokens are those that the
server read (without its cache); a reply is judged as in a chat.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench import REPO
from bench.bench_local_model import FOLDER, THINGS, VALUES
from codecompanion import prompts
from codecompanion.context.ledger.ledger import summarise
from codecompanion.context.summary.judge_reply import accept_reply
from codecompanion.context.summary.summary_run import summary_prompt
from codecompanion.context.summary_text.sections import Schema, load_schema
from codecompanion.context.transcript.format_transcript import wrap
from codecompanion.context.work import Failed, SummaryReply
from codecompanion.counting.tokens import estimate_text
from codecompanion.model.messages import Message
from tests.local_model import llama_server

HEAD = (
    *("chat", "method", "tokens read", "tokens from the cache", "seconds to first token"),
    *("tokens written", "result"),
)
PARAGRAPH_CHARS = 1_600
FEWER = ("request", "files", "pending", "current")
DRAFT = (
    "Write it under these four headings, each followed by one to three sentences:\n{headings}\n\n"
    "Here is a draft made by the program. Keep all that is right, and improve it:\n\n{draft}\n"
)


class Answer(NamedTuple):
    """A reply of the server: its text, its finish reason, its own figures, seconds to the first token."""

    text: str
    stop: str
    timings: dict[str, Any]
    first_s: float


def chat_of(number: int, chars: int) -> tuple[Message, ...]:
    """Return a chat of about `chars` characters: facts and paragraphs of this project's documentation."""
    text = re.sub(r"[^\w.,;:%() -]+", " ", (REPO / "doc" / "context.md").read_text(encoding="utf-8"))
    text = " ".join(text.split())
    made: list[Message] = []
    for turn in range(max(1, chars // PARAGRAPH_CHARS)):
        place = number * 8 + turn
        thing, value = THINGS[place % len(THINGS)], VALUES[place % len(VALUES)]
        start = place * PARAGRAPH_CHARS % (len(text) - PARAGRAPH_CHARS)
        paragraph = text[start : start + PARAGRAPH_CHARS]
        asked = f"Note: the {thing} is {value}. What does this paragraph say in one sentence? {paragraph}"
        said = f"It says: {paragraph[40 * (turn % 7) :][:160].strip()}."
        made.append(Message(id=f"u{turn}", role="user", content=asked, cycle=turn + 1))
        made.append(Message(id=f"a{turn}", role="assistant", content=said, cycle=turn + 1))
    return tuple(made)


def ask(url: str, messages: Sequence[dict[str, str]], most: int) -> Answer:
    """Send the messages and read the stream."""
    body = {"messages": messages, "max_tokens": most, "temperature": 0, "cache_prompt": True, "stream": True}
    request = urllib.request.Request(  # noqa: S310 (always http://127.0.0.1)
        f"{url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    began, first_s, text, stop, timings = time.monotonic(), 0.0, "", "", dict[str, Any]()
    with urllib.request.urlopen(request, timeout=1200) as lines:  # noqa: S310
        for line in lines:
            if not line.startswith(b"data:") or b"[DONE]" in line:
                continue
            event = json.loads(line[5:])
            timings = event.get("timings", timings)
            for choice in event.get("choices", []):
                piece = choice.get("delta", {}).get("content") or ""
                first_s = first_s or (time.monotonic() - began if piece else 0.0)
                text, stop = text + piece, choice.get("finish_reason") or stop
    return Answer(text, stop, timings, first_s or time.monotonic() - began)


def orders(chat: Sequence[Message], tokens: int) -> Iterator[tuple[str, str, Schema, bool]]:
    """Yield each way to ask: its name, the prompt, the expected form, whether it follows the chat."""
    nine, prompt = load_schema("cc_9"), summary_prompt("cc_9", "", tokens)
    four = msgspec.structs.replace(nine, section=tuple(part for part in nine.section if part.role in FEWER))
    ledger = summarise(tuple(chat), 500, estimate_text, "cc_9")
    blocks = re.split(r"\n\n(?=\d+\. \*\*)", ledger)
    draft = "\n\n".join(one for one in blocks if any(part.title in one.partition("\n")[0] for part in four.section))
    headings = "\n".join(f"{place}. **{part.title}**" for place, part in enumerate(four.section, 1))
    in_place = prompts.load("summary_in_place")
    yield "in the chat, nine sections", in_place.format(order=prompt), nine, True
    fewer = in_place.format(order=DRAFT.format(headings=headings, draft=draft))
    yield "in the chat, four sections and a draft", fewer, four, True
    entries = tuple(f'<message role="{one.role}">{one.text}</message>' for one in chat)
    yield "from a transcript, nine sections", wrap(entries, prompt), nine, False


def rows(url: str, chats: int, chars: int, tokens: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each request to the model."""
    for number in range(chats):
        chat = chat_of(number, chars)
        sent = [{"role": "system", "content": prompts.load("system_compact")}]
        sent += [{"role": one.role, "content": one.text} for one in chat]
        ask(url, sent, 1)
        for name, prompt, schema, follows in orders(chat, tokens):
            answer = ask(url, [*(sent if follows else ()), {"role": "user", "content": prompt}], tokens)
            reply = SummaryReply(text=answer.text, stop=answer.stop)
            judged = accept_reply(reply, schema, prompt, [one.text for one in chat])
            verdict = judged.reason if isinstance(judged, Failed) else "accepted"
            took = answer.timings
            figures = (f"{took.get('prompt_n', 0):,}", f"{took.get('cache_n', 0):,}", f"{answer.first_s:.1f}")
            yield (str(number + 1), name, *figures, str(took.get("predicted_n", 0)), verdict)


def main(argv: Sequence[str] | None = None) -> None:
    """Ask about each chat and print the table."""
    parser = argparse.ArgumentParser(prog="bench.bench_local_summaries")
    parser.add_argument("--window", type=int, default=8192)
    parser.add_argument("--chats", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=220, help="a summary may have")
    parser.add_argument("--chars", type=int, default=7_000, help="of a chat, about")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args(argv)
    llama_server.THREADS = chosen.threads
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        server = llama_server.LlamaServer(FOLDER / "bin" / "llama-server", FOLDER / "smollm2.gguf", Path(folder))
        server.start(chosen.window)
        try:
            for row in rows(server.url, chosen.chats, chosen.chars, chosen.tokens):
                print("| " + " | ".join(row) + " |", flush=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
