"""Scenes of semantic search: a project whose code gets vectors, then a question about it."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from typing import Any

from codecompanion.prompts import load
from tests.onnx_models import write_model_folder
from tests.options.desk import Desk, Given
from tests.options.host import Host, play, steady
from tests.providers.chat.answers import reply

FILES = {
    "one.py": "def zebra():\n    return 'zebra meadow'\n",
    "twin.py": "def zebra():\n    return 'zebra meadow'\n",
    "words.py": "def quite():\n    return 'ships at sea carry a zebra, grass of a meadow, and other heavy things'\n",
    "other.py": "def third():\n    return 'a herd of zebra under one tree'\n",
    "paint.py": "def fourth():\n    return 'brush and bucket'\n",
    **{f"more{n}.py": f"def more_{n}():\n    return {n}\n" for n in range(20)},
}
QUESTION = "#{codebase} zebra meadow grass"
UTILITY = {
    "classify_question": '{"isCodebaseRelated": true, "categories": ["api"], "confidence": "high"}',
    "question_type": '{"isDebugging": false}',
    "search_terms": "bucket, brush",
}
"""Answers of the utility model by prompt; only its search terms find `paint.py`."""
OLD_S = 40 * 86_400
UTILITY_S = 0.02


def found_by_meaning(desk: Desk, given: Given) -> Any:
    """Ask about the code before it has vectors, and again afterwards, when two files have been indexed for 40 days."""

    def prepare(host: Host) -> None:
        (host.root / "home").mkdir()
        for name, text in FILES.items():
            (host.work / name).write_text(text)
        words = {"meadow": [1.0, 0.0], "zebra": [0.0, 1.0]}
        write_model_folder(host.root / "config_dir" / "model", words)

    async def act(host: Host) -> Any:
        await host.say(QUESTION)
        services = host.runtime.services
        assert services.indexes is not None
        index = await services.indexes.of(host.work)
        await index.wait()
        if services.vectors is not None:
            await services.vectors.wait(index)
        if index.path.exists():  # a time-out of 100 ms may be over before there is one
            with contextlib.closing(sqlite3.connect(index.path)) as database, database:
                known_since = "UPDATE files SET indexed_at = ? WHERE path IN ('one.py', 'twin.py')"
                database.execute(known_since, (int(time.time()) - OLD_S,))
        await host.say(QUESTION)
        sent = [(one.headers.get("authorization"), steady(one.body.decode())) for one in desk.embedder.requests]
        return host.bodies()[-1], sorted(sent, key=str), host.notices()

    def answer(received: Any) -> Any:
        asked = str(received.json["messages"][-1]["content"])
        for name, text in UTILITY.items():
            if asked.startswith(load(name)[:40]):
                return reply(text, delay_s=UTILITY_S, one_chunk=True)
        return reply("I see.")

    desk.embedder.requests.clear()
    env = {"EMBED_KEY": "pencil", "OTHER_KEY": "other-pencil"}
    return play(desk, given, act, prepare=prepare, default=answer, env=env)
