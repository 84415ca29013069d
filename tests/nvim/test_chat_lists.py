"""Lists requested from the host: they show a loading state and never open over other work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chat_driver import ChatDriver, make_chat
from codecompanion.wire import events
from harness import Nvim

MODELS: list[dict[str, Any]] = [{"adapter": "openai", "models": [{"name": "gpt-4o", "window": 128_000}]}]
UNUSABLE = {"adapter": "azure_openai", "models": [], "problem": "azure_openai: no address is set"}


def answer_late(chat: ChatDriver, verb: str, result: Any) -> None:
    """Answer the oldest pending request with this verb."""
    chat.nvim.lua(
        """local verb, result = ...
           for _, request in ipairs(require('codecompanion.host').requests) do
             if request.verb == verb and request.callback and not request.answered then
               request.answered = true
               return request.callback(nil, result)
             end
           end
           error('nobody asks for ' .. verb)""",
        verb,
        result,
    )


def test_a_late_list_shows_loading_and_does_not_open_over_other_work(chat: ChatDriver) -> None:
    """After `ga` and then typing, the list is ready when requested again and is not fetched twice."""
    chat.nvim.feed("ga")
    chat.nvim.wait_screen("Loading the models…")
    chat.nvim.feed("ihello")
    answer_late(chat, "list_models", MODELS)
    chat.nvim.feed(" there<Esc>")
    screen = chat.nvim.wait_screen("The models are loaded; open the list again")
    assert "Choose a model" not in screen
    assert chat.input() == "hello there"
    chat.nvim.feed("ga")
    chat.nvim.wait_screen(r"openai · gpt-4o · 128k · current")
    assert len(chat.sent("list_models")) == 1
    chat.nvim.feed("q")
    chat.nvim.feed(":CodeCompanionChat Resume<CR>")
    chat.nvim.wait_screen("Loading the stored chats…")
    chat.nvim.command("split")
    # The command line has requested titles for completion, and the empty chat the title of an earlier one.
    for _ in chat.sent("list_sessions"):
        answer_late(chat, "list_sessions", [])
    chat.nvim.wait_screen("The stored chats are loaded; open the list again")


def test_the_list_of_models_marks_the_one_in_use(chat: ChatDriver) -> None:
    """With a word, and by the cursor; also the first of an entry that names no model."""
    names = ["a-model", "b-model", "c-model"]
    others = [{"adapter": "openai", "models": names}, {"adapter": "other", "models": ["b-model"]}]
    chat.answer("list_models", others)
    for model, marked in (("b-model", "b-model"), ("", "a-model")):
        chat.push(events.ModelChanged(adapter="openai", model=model, window=128_000))
        chat.nvim.feed("ga")
        chat.nvim.wait_screen("Choose a model")
        shown = chat.nvim.lines()
        assert [row for row in shown if "current" in row] == [f"openai · {marked} · current"]
        assert chat.nvim.request("nvim_get_current_line") == f"openai · {marked} · current"
        chat.nvim.feed("q")


def test_the_code_of_a_question_does_not_open_over_typed_text(chat: ChatDriver) -> None:
    """`/context` may take a while; meanwhile, keys go to the text being typed."""
    row = {"path": "a.py", "start": 1, "end": 9, "what": "a.py:1-9", "source": "search", "score": 0.5, "tokens": 9}
    report = {"title": "1 snippet", "head": [], "rows": [{**row, "state": "in", "why": ""}], "can_choose": True}
    chat.nvim.feed("i/context why?<Esc><CR>")
    chat.nvim.wait_screen("Loading the snippets…")
    chat.nvim.feed("A quick")
    answer_late(chat, "preview_code", report)
    chat.nvim.feed(" question<Esc>")
    screen = chat.nvim.wait_screen("The snippets are loaded; open the list again")
    assert "a.py:1-9" not in screen
    assert chat.input() == "why? quick question"
    chat.nvim.feed(":CodeCompanionContext why?<CR>")
    chat.nvim.wait_screen(r"✓ \.50 +9 search +a\.py:1-9")
    assert len(chat.sent("preview_code")) == 1


def test_a_list_requested_twice_opens_once(chat: ChatDriver) -> None:
    """A second key press during loading opens one list, and the loading line disappears."""
    chat.nvim.feed("ga")
    chat.nvim.wait_screen("Loading the models…")
    chat.nvim.feed("ga")
    chat.nvim.settle()
    answer_late(chat, "list_models", MODELS)
    answer_late(chat, "list_models", MODELS)
    screen = chat.nvim.wait_screen("Choose a model")
    assert len(chat.nvim.lua("return vim.api.nvim_list_wins()")) == 2
    assert "Loading" not in screen


def test_an_unusable_adapter_is_listed_with_the_reason_and_refused(chat: ChatDriver) -> None:
    """`azure_openai` without a URL offers no models, and choosing it by name is refused with the reason."""
    chat.answer("list_models", [*MODELS, {**UNUSABLE, "brief": "no address"}])
    chat.nvim.feed("i/adapter azure_openai<Esc><CR>")
    chat.nvim.wait_screen("! azure_openai: no address is set. The adapter was not changed.")
    chat.nvim.feed("ga")
    chat.nvim.wait_screen("azure_openai · needs AZURE_OPENAI_API_KEY")


def test_the_list_of_models_starts_on_the_current_one(chat: ChatDriver) -> None:
    """Unusable adapters are listed below with the reason, including a cloud without credentials.

    Choosing one changes nothing.
    """
    bedrock = {"adapter": "bedrock", "models": [{"name": "global.claude", "window": 200_000}]}
    template = {"adapter": "openai_compatible", "models": [], "problem": "Nothing listens there.", "brief": "away"}
    offline = {"adapter": "offline", "models": [{"name": "offline", "window": 0}]}
    broken = {"adapter": "broken", "models": [], "problem": "", "brief": "url is wrong"}
    chat.answer("list_models", [bedrock, broken, offline, *MODELS, template])
    chat.nvim.feed("ga")
    chat.nvim.wait_screen("Choose a model")
    lines = chat.nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
    assert lines == [
        "openai · gpt-4o · 128k · current",
        "offline",
        "",
        "Not usable yet",
        "bedrock · needs AWS credentials: aws sso login or aws configure",
        "broken · url is wrong",
        "openai_compatible · any other server: set its url in setup()",
    ]
    assert chat.nvim.lua("return vim.api.nvim_get_current_line()") == lines[0]
    reasons = {
        "bedrock": "✗ bedrock: needs AWS credentials: aws sso login or aws configure. The adapter was not changed.",
        "openai_comp": "✗ openai_compatible: any other server: set its url",
        "Not usable": "Not usable yet",  # the list stays open
    }
    for place, reason in reasons.items():
        chat.nvim.feed(f"/{place}<CR><CR>")
        chat.nvim.wait_screen(reason)
        chat.nvim.feed("ga")
        chat.nvim.wait_screen("Choose a model")
    assert not chat.sent("set_model")


def test_many_unusable_adapters_are_one_row_that_opens_them(chat: ChatDriver) -> None:
    """The row is the last one; the cursor then is on the first of them."""
    lacking = [{"adapter": f"own_{n}", "models": [], "problem": "", "brief": "needs a key"} for n in range(6)]
    chat.answer("list_models", [*MODELS, *lacking])
    chat.nvim.feed("ga")
    chat.nvim.wait_screen("Choose a model")
    row = "6 more adapters need a key, a login or a server"
    assert chat.nvim.lines() == ["openai · gpt-4o · 128k · current", row]
    chat.nvim.feed("G<CR>")
    chat.nvim.wait_screen("Not usable yet")
    assert chat.nvim.request("nvim_get_current_line") == "own_0 · needs a key"
    assert row not in chat.nvim.lines()


def test_a_list_that_continues_below_shows_no_marks_of_neovim(nvim_factory: Callable[..., Nvim]) -> None:
    """A wrapped entry in the last row used to end in `@@@`; the footer shows that more follows."""
    chat = make_chat(nvim_factory, size=(40, 12))
    chat.nvim.lua(
        """local items = vim.fn['repeat']({ ('word '):rep(20) }, 9)
           require('codecompanion.screen.choose').select(items, { prompt = 'Many' }, function() end)"""
    )
    assert "@@@" not in chat.nvim.wait_screen("↓ · |more below")


def test_long_list_entries_wrap_and_take_only_the_rows_they_need(
    nvim_factory: Callable[..., Nvim],
) -> None:
    """With `/policy` at 80x24, the middle of each line used to be cut off, with empty rows below."""
    chat = make_chat(nvim_factory, size=(80, 24))
    about = "edits old tool results first and summarises everything before the last four turns when that is not enough"
    rows = [{"name": f"policy{n}", "description": f"{about} {n}.", "current": n == 2} for n in range(6)]
    chat.answer("list_policies", rows)
    chat.nvim.feed("i/policy<Esc><CR>")
    screen = chat.nvim.wait_screen("policy5")
    for n in range(6):
        assert f"enough {n}." in " ".join(screen.replace("│", " ").split())
    rows_inside = [row for row in screen.split("\n") if row.startswith("│")]
    assert len(rows_inside) == 12
    assert all(row.strip("│ ") for row in rows_inside)
    assert chat.nvim.request("nvim_get_current_line").startswith("policy2 · current · edits")
    chat.nvim.feed("j<CR>")
    chat.nvim.wait_for(lambda: chat.sent("set_policy"), "set_policy")
    assert chat.sent("set_policy")[0]["policy"] == "policy3"
