"""`context` on the command line: the request for the summary is the chat's."""

from __future__ import annotations

from codecompanion.cli.commands import context
from codecompanion.model.transcript_format import Transcript
from codecompanion.session.history.titles import title_of
from tests.unit.context.builders import chat, turns
from tests.unit.session.fakes import ScriptedAdapter, says


def test_the_summary_prompt_names_the_task(monkeypatch):
    """R-435: the task is named by the title that a chat with these messages gets."""
    adapter = ScriptedAdapter("s", lambda request: says("SUMMARY"))
    monkeypatch.setattr(context, "_adapter", lambda name: adapter)
    messages = chat(*turns(12, 400))
    first = next(message for message in messages if message.role == "user")
    options = context.Options(policy="cowork", window=4_000, manual=True, adapter="s")
    context.prepare_transcript(Transcript(messages, {message.id: {} for message in messages}), options)
    assert f"\n\nThe task is called: {title_of(first.text)}\n\n" in adapter.requests[0].messages[-1].text
