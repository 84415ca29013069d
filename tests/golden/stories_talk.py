"""Plain conversation: replies, cancelling, steering, retries, prompts and the other parts of a request."""

from __future__ import annotations

import asyncio

from tests.golden.desk import CHAT, Desk, story
from tests.providers.chat.answers import Call, failure, reply


def usage(prompt: int, output: int = 9) -> dict[str, int]:
    """Return a provider's usage report on a request."""
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}


@story()
async def plain_talk(desk: Desk) -> None:
    """Two questions are answered; the provider reports the size of the second request only."""
    desk.model(reply("Hello. What is it about?"), reply("A heap.\n\n```python\nx = 1\n```\n", usage=usage(520)))
    await desk.say("Hi there")
    await desk.say("Which structure is a priority queue made of?")
    await desk.chat("inspect")


@story(tools=None, whole_tools=True)
async def all_tools_offered(desk: Desk) -> None:
    """Every built-in tool is sent with its schema, and the editor gets the list of tools."""
    desk.model(reply("There are many."))
    await desk.say("Which tools do you have?")
    await desk.chat("list_tools")
    await desk.chat("show_system_prompt")


@story()
async def reasoning_shown(desk: Desk) -> None:
    """The model's reasoning is shown before its answer, and sent back in the next request."""
    desk.model(reply("Four.", reasoning="Two and two. That is four."), reply("Yes."))
    await desk.say("2 + 2?")
    await desk.say("Sure?")


@story()
async def cancelled_in_the_middle(desk: Desk) -> None:
    """The user stops a half-finished reply, then asks something else."""
    gate = asyncio.Event()
    desk.model(reply("The beginning and the end", chunk_chars=13, gate=gate, gate_after=2), reply("Fine."))
    await desk.submit("Tell me a story")
    await desk.until("text")
    await desk.chat("cancel")
    await desk.until("turn_finished")
    gate.set()
    await desk.say("Never mind")


@story(wire="openai_compatible")
async def steered_and_queued(desk: Desk) -> None:
    """Two messages sent while the model works are delivered before its next request."""
    gate = asyncio.Event()
    desk.write("a.txt", "one\n")
    call = Call("read_file", '{"path": "a.txt"}', "c1")
    desk.model(reply("I look.", calls=[call], gate=gate, gate_after=3), reply("Both done."))
    await desk.submit("Look at a.txt")
    await desk.until("text")
    await desk.submit("Also say how long it is")
    await desk.submit("And be short")
    gate.set()
    await desk.until("turn_finished")


@story()
async def queued_then_cancelled(desk: Desk) -> None:
    """A queued message returns to the input when the user stops the turn."""
    gate = asyncio.Event()
    desk.model(reply("The beginning and the end", chunk_chars=13, gate=gate, gate_after=2))
    await desk.submit("Go")
    await desk.until("text")
    await desk.submit("One more thing")
    await desk.until("queued")
    await desk.chat("cancel")
    await desk.until("turn_finished")
    gate.set()


@story()
async def retried_after_overload(desk: Desk) -> None:
    """A request to an overloaded provider is retried after the requested time."""
    desk.model(failure(503, "overloaded", headers={"retry-after-ms": "1"}), reply("Here I am."))
    await desk.say("Are you there?")


@story()
async def dropped_stream(desk: Desk) -> None:
    """A stream breaks before its first word, and the user retries; a later one is kept truncated and continued."""
    desk.model(reply("never", break_after=0), reply("Here."), reply("Half of it and the rest", break_after=4))
    await desk.say("One?")
    await desk.chat("regenerate", snapshot=desk.snapshot())
    await desk.until("turn_finished")
    await desk.say("Two?")
    desk.model(reply(" and the rest of it."))
    await desk.chat("go_on", snapshot=desk.snapshot())
    await desk.until("turn_finished")


@story()
async def refused_request(desk: Desk) -> None:
    """A request that the provider refuses ends the turn with its reason; the message stays and can be asked again."""
    desk.model(failure(401, "Incorrect API key provided."), reply("Now it works."))
    await desk.say("Hello?")
    await desk.chat("regenerate", snapshot=desk.snapshot())
    await desk.until("turn_finished")


@story(chat={"max_output_continuations": 1})
async def output_limit(desk: Desk) -> None:
    """A reply that ends at the output limit is continued once, then left as it is."""
    desk.model(reply("First part", finish="length"), reply(" second part", finish="length"))
    await desk.say("Write a long text")


@story(chat={"system_prompt": "You are terse."})
async def own_system_prompt(desk: Desk) -> None:
    """The user's system prompt replaces the built-in one."""
    desk.model(reply("Yes."))
    await desk.say("Are you?")
    await desk.chat("show_system_prompt")


@story(chat={"response_style": "terse"})
async def response_style(desk: Desk) -> None:
    """The style of replies changes the system prompt."""
    desk.model(reply("Yes."))
    await desk.say("Are you?")


@story()
async def other_model_and_policy(desk: Desk) -> None:
    """The user changes the model and the policy during a chat."""
    desk.model(reply("One."), reply("Two."), reply("Three."))
    await desk.say("First")
    await desk.chat("set_model", adapter=desk.adapter, model="other-model")
    await desk.say("Second")
    await desk.chat("list_policies")
    await desk.chat("set_policy", policy="adaptive")
    await desk.chat("set_policy", policy="nobody")
    await desk.say("Third")


@story()
async def regenerated(desk: Desk) -> None:
    """An answer is replaced by another one, which is undone and redone."""
    desk.model(reply("One answer."), reply("Another answer."), reply("Go on."))
    await desk.say("Question")
    await desk.chat("regenerate", snapshot=desk.snapshot())
    await desk.until("turn_finished")
    await desk.chat("undo_change")
    await desk.chat("redo_change")
    await desk.say("More")


@story()
async def cleared_chat(desk: Desk) -> None:
    """/clear empties the view, the log keeps everything; undo brings it back."""
    desk.model(reply("One."), reply("Two."), reply("Three."))
    await desk.say("First")
    await desk.chat("clear")
    await desk.say("Second")
    await desk.chat("undo_change")
    await desk.say("Third")


@story()
async def drafts_titles_and_lists(desk: Desk) -> None:
    """A chat gets a draft and another title, is listed, closed and opened again."""
    desk.model(reply("One."))
    await desk.say("First question of this chat")
    await desk.chat("save_draft", text="half a sen")
    await desk.chat("rename_session", title="A better title")
    await desk.send("list_sessions", cwd=str(desk.work))
    await desk.chat("close_chat")
    await desk.open(resume=CHAT)
    await desk.chat("redraw_chat")
    await desk.chat("close_chat")
    await desk.chat("delete_session")


@story()
async def killed_in_the_middle(desk: Desk) -> None:
    """The host is killed while a reply streams; another one opens the chat from the store and continues it."""
    gate = asyncio.Event()
    desk.write("a.txt", "one\n")
    desk.model(reply("", calls=[Call("read_file", '{"path": "a.txt"}', "c1")]), reply("One line."))
    await desk.say("Look at a.txt")
    desk.model(reply("The beginning and the end", chunk_chars=13, gate=gate, gate_after=2))
    await desk.submit("Tell me more")
    await desk.until("text")
    await desk.kill()
    gate.set()
    desk.server.script.clear()
    desk.model(reply("I go on."))
    await desk.open(resume=CHAT, shown="The beginning")
    await desk.say("Go on")


@story()
async def two_neovims(desk: Desk) -> None:
    """A chat is open in two Neovims: the second only shows it, until the first has closed it."""
    desk.model(reply("One."), reply("Two."))
    await desk.say("First")
    await desk.go_to_neovim("second")
    await desk.open(resume=CHAT)
    await desk.submit("Not sent")
    await desk.chat("rename_session", title="Not renamed")
    await desk.chat("delete_session")
    await desk.send("list_sessions", cwd=str(desk.work))
    await desk.go_to_neovim("first")
    await desk.chat("close_chat")
    await desk.go_to_neovim("second")
    await desk.open(resume=CHAT)
    await desk.say("Second")


@story()
async def history_file_lost(desk: Desk) -> None:
    """The file of all chats is deleted while one is open: it is rewritten, and the user sees which chats are lost."""
    desk.model(reply("One."), reply("Two."), reply("Three."))
    await desk.say("First")
    await desk.remove_history()
    await desk.say("Second")
    await desk.say("Third")


@story(wire="openai_compatible")
async def opened_with_other_settings(desk: Desk) -> None:
    """A chat is opened in a Neovim that lacks its adapter and whose settings contain a mistake."""
    desk.model(reply("One."), reply("Two."))
    await desk.say("First")
    await desk.chat("close_chat")
    await desk.go_to_neovim("second", wire="openai", chat={"max_output_continuations": "many"})
    await desk.open(resume=CHAT)
    await desk.say("Second")
