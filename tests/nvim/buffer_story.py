"""A random history of one chat, drawn as it happens: the real session in this process, drawn in a real Neovim.

The session's events go to Lua as on the wire; Lua's requests to the host go to the session. `Story.check` compares
the lines that the buffer shows as live with the contents of the next request.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import random
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import CodeCompanionError
from codecompanion.model.messages import (
    EDITOR_TAG,
    GATHERED_TAG,
    GO_ON_TAG,
    LOOKING_TAG,
    SUMMARY_TAG,
    UPDATE_TAG,
    Message,
    is_typed_by_user,
)
from codecompanion.session.actions.choose_policy import choose_policy
from codecompanion.session.attachments.attached import text_attachment
from codecompanion.session.attachments.read_attachment import read_attachment
from codecompanion.session.chat.inspection import inspect
from codecompanion.session.chat.redraw import redraw
from codecompanion.session.history.messages_out_of_view import is_drawn
from codecompanion.session.session import Session
from codecompanion.wire.events import CodeGathered, EditorContextSent, Event, FileUpdated, MessageSent
from codecompanion.wire.requests import (
    Approve,
    Attach,
    ClearMessage,
    Detach,
    EditorContext,
    Pin,
    RedoChange,
    Request,
    RestoreMessage,
    Snapshot,
    Submit,
    UndoChange,
    Unpin,
)
from harness import Nvim
from story_host import POLICIES, any_item, change_file, make_bench
from tests.patience import PATIENCE_S
from tests.unit.session.fakes import submit

ALONG = (GATHERED_TAG, UPDATE_TAG, EDITOR_TAG)
"""Tags of a question's attachments, which precede it in the request and follow it on the screen."""
TAKEN_OUT = ("since removed from context", "some has since been removed from context")
"""Phrases in a message that names removed content; the buffer shows the removal in the message's line."""
STEPS_LUA = Path(__file__).with_name("buffer_story.lua").read_text(encoding="utf-8")


class Story:
    """One chat, its user and its host."""

    def __init__(self, nvim: Nvim, root: Path, seed: int) -> None:
        """Use a Neovim prepared by `prepare`."""
        self.nvim, self.root, self.seed = nvim, root, seed
        for left_over in root.glob("live*.txt"):
            left_over.unlink()
        self.random = random.Random(seed)
        self.done: list[str] = []
        self.policy = self.random.choice(POLICIES)
        self.said = 0
        self.bench = make_bench(root, self.random, self.policy)
        self.along: dict[str, list[str]] = {}
        """The attachments of each question, by message id."""
        self.loop = asyncio.new_event_loop()
        self.chat = nvim.lua("return Story.begin()")
        self.session: Session = self.run(self._open())

    async def _open(self) -> Session:
        return await self.bench.open(self.chat)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, PATIENCE_S))

    def close(self) -> None:
        """End the session and delete the buffer."""
        self.run(self.session.close())
        self.run(self.bench.store.aclose())
        self.loop.close()

    # ---- between Lua and the session

    def exchange(self) -> None:
        """Draw the session's events and execute Lua's requests until neither side has any left."""
        while True:
            events, self.bench.events = self.bench.events, list[Event]()
            sent = ""
            for event in events:
                sent = event.message_id if isinstance(event, MessageSent) else sent
                if isinstance(event, CodeGathered | FileUpdated | EditorContextSent):
                    self.along.setdefault(sent, []).append(event.message_id)
            asked = self.nvim.lua("return Story.draw(...)", json.dumps([msgspec.to_builtins(e) for e in events]))
            for request in json.loads(asked):
                self._carry_out(request["verb"], request["payload"])
            if not self.bench.events and asked == "[]":
                return

    def _carry_out(self, verb: str, payload: dict[str, Any]) -> None:
        match verb:
            case "redraw_chat":
                self.run(redraw(self.session))
            case "detach":
                self._try(self.session.detach(Detach(chat=self.chat, items=tuple(payload["items"])).items))
            case "undo_change":
                self._ask(UndoChange(chat=self.chat, change_id=payload.get("change_id", "")))
            case _:
                pass

    def _try(self, work: Coroutine[Any, Any, Any]) -> None:
        with contextlib.suppress(CodeCompanionError):
            self.run(work)

    def _ask(self, request: Request) -> None:
        self._try(self.session.edits.carry_out(request))

    # ---- what may happen

    @property
    def view(self) -> tuple[Message, ...]:
        return self.session.log.view.messages

    def _any_message(self) -> str:
        return self.random.choice(self.view).id if self.view else ""

    async def _idle(self) -> None:
        """Wait until control is back with the user, answering questions on the way."""
        desk = self.session.desk
        while True:
            await self.bench.until(lambda: bool(desk.questions) or self.bench.is_idle(self.session))
            if not desk.questions:
                return
            (question,), decision = desk.questions, self.random.choice(("once", "once", "reject"))
            desk.answer(Approve(chat=self.chat, call_id=question.call_id, decision=decision))
            await self.bench.until(lambda asked=question: asked not in desk.questions)

    def talk(self) -> None:
        self.said += 1
        text = f"question {self.said}" + " please" * self.random.choice((0, 40, 200))
        text += self.random.choice(("", "", " #{codebase}"))

        self.run(self._send(submit(text, self.said)))

    async def _send(self, message: Submit) -> None:
        self.session.submit(message)
        late = tuple(msgspec.structs.replace(one, comes="now") for one in message.items if one.comes == "later")
        if late:
            self.session.mentioned.take(EditorContext(chat=self.chat, submit_id=message.submit_id, items=late))
        await self._idle()

    def mention(self) -> None:
        """Mention editor items, occasionally a missing one, so that the message returns unsent."""
        self.said += 1
        items = tuple(any_item(self.root, self.random) for _ in range(self.random.randint(1, 3)))
        words = " ".join(item.written for item in items)
        seen = Snapshot(current=str(self.root / "a.txt"), visible=(1, self.random.choice((1, 40)), 90))
        message = submit(f"question {self.said} on {words}", self.said)
        self.run(self._send(msgspec.structs.replace(message, items=items, snapshot=seen)))

    def compact(self) -> None:
        async def compact() -> None:
            self.session.compact("")
            await self._idle()

        self.run(compact())

    def undo(self) -> None:
        self._ask(UndoChange(chat=self.chat))

    def redo(self) -> None:
        self._ask(RedoChange(chat=self.chat))

    def pin(self) -> None:
        self._ask(Pin(chat=self.chat, item=self._any_message(), text=self.random.choice(("", "", "use tabs"))))

    def unpin(self) -> None:
        self._ask(Unpin(chat=self.chat, number=1))

    def restore(self) -> None:
        gone = list(self.session.log.gone)
        cleared = [message.id for message in self.view if message.edited]
        if gone or cleared:
            self._ask(RestoreMessage(chat=self.chat, item=self.random.choice(gone + cleared)))

    def clear_one(self) -> None:
        results = [message.id for message in self.view if message.role == "tool" or message.tag in ALONG]
        if results:
            self._ask(ClearMessage(chat=self.chat, item=self.random.choice(results)))

    def attach(self) -> None:
        path = f"f{self.random.randrange(4)}.txt"
        message = text_attachment("file", path, "text " * 10, self.bench.services.new_token())
        self._try(self.session.attach(message))

    def attach_live(self) -> None:
        """Attach a file live, so that the model gets its changes; an hour later it may have grown or disappeared."""
        path = change_file(self.root, self.random)

        async def attach() -> None:
            wanted = Attach(chat=self.chat, kind="file", path=path, live=True)
            await self.session.attach(await read_attachment(self.bench.services, wanted, self.root))

        self._try(attach())

    def change_file(self) -> None:
        """Change a file, attached or not, and send a message."""
        for _ in range(self.random.randint(1, 3)):
            change_file(self.root, self.random)
        self.talk()

    def toggle_live(self) -> None:
        files = [message.id for message in self.view if message.file is not None and message.tag != UPDATE_TAG]
        if files:
            self._try(self.session.context.set_live((self.random.choice(files),), self.random.random() < 0.5))

    def detach(self) -> None:
        items = [m.id for m in self.view if m.role == "user" and m.tag and m.tag not in (SUMMARY_TAG, GO_ON_TAG)]
        if items:
            self._try(self.session.detach((self.random.choice(items),)))

    def delete_context_line(self) -> None:
        """Press `dd` on a line of the context block, and occasionally `u` right after or later."""
        self.nvim.lua("Story.delete_context_line(...)", self.random.randrange(100))
        if self.random.random() < 0.5:
            self.exchange()
        if self.random.random() < 0.5:
            self.nvim.lua("Story.undo_there()")

    def clear(self) -> None:
        self.run(self.session.clear())

    def answer_again(self) -> None:
        async def again() -> None:
            await self.session.regenerate(Snapshot())
            await self._idle()

        self._try(again())

    def switch_model(self) -> None:
        self.run(self.session.use_model(self.random.choice(("s", "other")), ""))

    def switch_policy(self) -> None:
        self._try(choose_policy(self.session, self.random.choice(POLICIES)))

    def resume(self) -> None:
        """Leave Neovim and resume the chat in a new one."""

        async def again() -> Session:
            await self.session.close()
            self.bench.events.clear()
            session = await self.bench.resume(self.chat)
            assert session is not None
            return session

        self.nvim.lua("Story.leave()")
        self.session = self.run(again())
        self.nvim.lua("Story.resume(...)", self.chat)

    def draw_again(self) -> None:
        self.nvim.lua("Story.command(...)", self.random.choice(("edit", "edit!", "windo edit", "bdelete", "redraw")))

    def step(self) -> None:
        """Do one random thing, draw it, and check."""
        often = [self.talk] * 6 + [self.compact] * 2 + [self.undo] * 3 + [self.redo] * 2
        rest = [self.pin, self.unpin, self.restore, self.clear_one, self.attach, self.attach, self.detach]
        rest += [self.delete_context_line, self.clear, self.answer_again, self.switch_model, self.switch_policy]
        rest += [self.resume, self.draw_again, self.draw_again]
        rest += [self.mention] * 4 + [self.attach_live, self.change_file, self.change_file, self.toggle_live]
        action = self.random.choice(often + rest)
        self.done.append(action.__name__)
        action()
        self.exchange()
        self.check()

    # ---- what must hold

    def expected(self) -> dict[str, Any]:
        """Return the contents of the next request, as listed by the inspector."""
        shaped = {message.id: message for message in self.session.control.shaper.current().messages}
        rows = inspect(self.session.control, self.session.log)["rows"]
        said, cards, context, cleared, lost = [], [], [], [], []
        for row in rows:
            message = shaped.get(row["id"])
            if message is None or message.id.startswith("packet-"):
                continue
            is_short = row["state"] in ("cleared", "cut")
            if message.tag in ALONG:
                said.append(message.id)
                cleared += [message.id] * is_short
                lost += [message.id] * (not is_short and any(words in message.text for words in TAKEN_OUT))
            elif message.tag == SUMMARY_TAG or message.compaction:
                cards.append(message.id)
            elif is_typed_by_user(message) or message.role != "user":
                if is_drawn(message):
                    said.append(message.id)
                    cleared += [message.id] * (message.role == "tool" and is_short)
            elif message.tag not in (GO_ON_TAG, LOOKING_TAG) and (not message.compacted or self._is_live(message)):
                context.append(message.id)
        for question, along in self.along.items():  # before it in the request, below it on the screen
            here = [known for known in said if known in along]
            if here and question in said:
                said = [known for known in said if known not in here]
                place = said.index(question) + 1
                said[place:place] = here
        lost = [known for known in said if known in lost]
        return {"said": said, "cards": cards, "context": context, "cleared": cleared, "lost": lost}

    def _is_live(self, message: Message) -> bool:
        """Return whether an attachment is live, and therefore stays in the block after it was summarised."""
        known = self.session.log.files.get(message.path or "")
        return known is not None and known.item == message.id and known.live

    def check(self) -> None:
        """Compare the lines shown as live with the next request."""
        shown, expected = json.loads(self.nvim.lua("return Story.shown()")), self.expected()
        why = f"seed {self.seed}, {self.policy}: {self.done}"
        assert shown["problem"] == "", f"{shown['problem']}; {why}"
        if shown != {**expected, "problem": ""}:
            text = "\n".join(self.nvim.lua("return Story.lines(true)"))
            raise AssertionError(f"{why}\nshown    {shown}\nexpected {expected}\n{text}")

    def check_redrawn(self) -> None:
        """Compare the incrementally drawn buffer with one drawn from the log."""
        before = self.nvim.lua("return Story.lines(false)")
        self.nvim.lua("Story.command('redraw')")
        self.exchange()
        after = self.nvim.lua("return Story.lines(false)")
        if before != after:
            text = "\n".join(difflib.unified_diff(before, after, "as it grew", "from the log", lineterm=""))
            raise AssertionError(f"seed {self.seed}, {self.policy}: {self.done}\n{text}")


def prepare(nvim: Nvim) -> None:
    """Load the code for the stories into a Neovim started with the fake host."""
    nvim.lua(STEPS_LUA)
