"""Late, wrong, multiple or missing answers, and failures of the host and the server (R-261)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ghost import Ghost, start
from harness import Nvim

PLUG = "imap <{}> <Plug>(CodeCompanionComplete{})"


@pytest.fixture
def ghost(nvim_factory: Callable[..., Nvim]) -> Ghost:
    """Return a Neovim with completion on, some keys, and an empty file."""
    made = start(nvim_factory)
    for key, name in (("F2", "Accept"), ("F5", "Next"), ("F6", "Previous"), ("F7", "Dismiss"), ("F8", "")):
        made.nvim.command(PLUG.format(key, name))
    made.open("a.txt")
    made.hold()
    return made


def test_a_late_answer_that_matches_typed_text_is_shown(ghost: Ghost) -> None:
    """Late answers are dropped, unless the text typed in the meantime matches."""
    ghost.type("ifo")
    ghost.wait_asked(1)
    ghost.nvim.lua("require('codecompanion.config').options.completion.debounce = 60000")  # no newer question meanwhile
    ghost.type("o")
    ghost.answer(1, "o(bar)")
    assert ghost.shown() == "(bar)"


@pytest.mark.parametrize(
    "keys", ["x", "<Left>", "<BS>", "<CR>", "<Esc>", "<C-o>", "<Esc>:enew!<CR>i", "<Esc>:e! b.txt<CR>ifo", "<Esc>Ofo"]
)
def test_an_answer_for_another_place_is_dropped(ghost: Ghost, keys: str) -> None:
    """An answer must match the buffer, cursor and text; a dropped answer causes no error."""
    ghost.type("ifo")
    ghost.wait_asked(1)
    ghost.type(keys)
    ghost.answer(1, "o(bar)")
    assert ghost.shown() == ""
    assert ghost.nvim.messages() == "" or "--No lines" in ghost.nvim.messages()


def test_a_deleted_buffer_cancels_its_request(ghost: Ghost) -> None:
    """Its answer is dropped."""
    ghost.type("ifo")
    ghost.wait_asked(1)
    ghost.type("<Esc>")
    ghost.nvim.command("bwipeout!")
    ghost.answer(1, "o(bar)")
    assert ghost.shown() == ""
    assert ghost.nvim.messages() == ""
    (cancelled,) = ghost.asked("cancel_completion")
    assert cancelled["of"] > 0


def test_a_newer_request_cancels_the_previous_one(ghost: Ghost) -> None:
    """A slow server does not get requests that are no longer wanted."""
    ghost.type("ia")
    ghost.wait_asked(1)
    ghost.type("b")
    ghost.wait_asked(2)
    assert len(ghost.asked("cancel_completion")) == 1
    ghost.answer(1, "b too late")
    assert ghost.shown() == ""
    ghost.answer(2, "c")
    assert ghost.shown() == "c"


def test_rapid_typing_sends_one_request(ghost: Ghost) -> None:
    """Debouncing merges 300 keys typed in one go."""
    ghost.type("i" + "word " * 60)
    ghost.pause()
    assert [question["before"] for question in ghost.asked()] == ["word " * 60]


def test_ten_thousand_pasted_lines_send_a_short_request(ghost: Ghost) -> None:
    """The request has 8,000 characters before the cursor and the top of the file, not all of it."""
    ghost.type("i")
    text = "\n".join(f"line {number:06}" for number in range(10_000))
    ghost.nvim.request("nvim_paste", text, True, -1)
    # On a slow machine a pause is over in between, and there was a question more.
    question = wait_for_question(ghost, text[-8000:])
    assert question["head"] == text[:20_000]
    at = text.index("line 004999")
    ghost.type("<Esc>5000G0ix")
    question = wait_for_question(ghost, (text[:at] + "x")[-8000:])
    assert question["after"] == text[at : at + 2000]


def wait_for_question(ghost: Ghost, before: str) -> dict[str, Any]:
    """Wait until the newest request has this text before the cursor, and return that request."""
    ghost.nvim.wait_for(lambda: ghost.asked()[-1:] and ghost.asked()[-1]["before"] == before, "the question")
    return ghost.asked()[-1]


def test_the_limit_counts_characters_instead_of_bytes(ghost: Ghost) -> None:
    """R-256: the text is cut at a character boundary."""
    text = "\n".join(["é" * 99] * 300)
    ghost.open("b.txt", text, (150, 0))
    ghost.type("ix")
    question = ghost.wait_asked(1)
    at = 149 * 100
    assert question["before"] == (text[:at] + "x")[-8000:]
    assert question["after"] == text[at : at + 2000]
    assert question["head"] == (text[:at] + "x")[:-8000]
    assert question["column"] == 1


def test_auto_pairs_are_not_duplicated(ghost: Ghost) -> None:
    """A `)` inserted after the cursor by a mapping is not inserted again."""
    ghost.nvim.command("inoremap ( ()<Left>")
    ghost.type("ix = ")
    ghost.wait_asked(1)
    ghost.answer(1, "foo(bar)")
    ghost.type("foo(")
    assert ghost.nvim.lines() == ["x = foo()"]
    assert ghost.shown() == "bar"
    ghost.type("<F2>")
    assert ghost.nvim.lines() == ["x = foo(bar)"]


def test_a_pair_in_the_middle_causes_a_new_request(ghost: Ghost) -> None:
    """Otherwise the rest of the suggestion would follow a bracket that already exists."""
    ghost.nvim.command("inoremap ( ()<Left>")
    ghost.type("ix = ")
    ghost.wait_asked(1)
    ghost.answer(1, "foo(bar).baz")
    ghost.type("foo(")
    assert ghost.shown() == ""
    assert ghost.wait_asked(2)["after"] == ")"


def test_typing_along_works_over_several_lines_with_autoindent(ghost: Ghost) -> None:
    """<CR> and its automatic indentation count as typing along."""
    ghost.nvim.command("set autoindent")
    ghost.type("i    if x:")
    ghost.wait_asked(1)
    ghost.answer(1, "\n    y = 1\n    z = 2")
    ghost.type("<CR>y")
    assert ghost.shown() == " = 1\n    z = 2"
    assert len(ghost.asked()) == 1
    ghost.type(" = 1<CR>z")
    assert ghost.shown() == " = 2"
    ghost.type("<F2>")
    assert ghost.nvim.lines() == ["    if x:", "    y = 1", "    z = 2"]


def test_the_next_suggestion_is_requested_at_once(ghost: Ghost) -> None:
    """It is prefetched after the previous one is accepted."""
    ghost.type("ia")
    ghost.wait_asked(1)
    ghost.answer(1, "b")
    ghost.type("<F2>")
    assert len(ghost.asked()) == 2, "before any pause"
    ghost.answer(2, "c")
    assert ghost.shown() == "c"
    ghost.type("<F2><F2>")
    assert ghost.nvim.lines() == ["abc"]


def test_other_suggestions_can_be_cycled(ghost: Ghost) -> None:
    """If there is only one suggestion, more are requested."""
    ghost.type("ia")
    ghost.wait_asked(1)
    ghost.answer(1, "one", "two")
    assert ghost.nvim.lua("return require('codecompanion').completion_statusline()") == "suggestion 1/2"
    ghost.type("<F5>")
    assert ghost.shown() == "two"
    ghost.type("<F5>")
    assert ghost.shown() == "one"
    ghost.type("<F6>")
    assert ghost.shown() == "two"
    ghost.type("t")
    assert ghost.shown() == "wo"
    ghost.type("<F7>")
    assert ghost.shown() == ""
    ghost.type("<F5><F2><F7>")
    assert ghost.nvim.lines() == ["at"]


def test_more_are_requested_if_there_is_one(ghost: Ghost) -> None:
    ghost.type("ia")
    ghost.wait_asked(1)
    ghost.answer(1, "one")
    ghost.type("<F5>")
    question = ghost.wait_asked(2)
    assert (question["manual"], question["count"]) == (True, 3)
    ghost.answer(2, "one", "two", "three")
    assert ghost.shown() == "two"
    ghost.type("<F6><F6>")
    assert ghost.shown() == "three"
    assert len(ghost.asked()) == 2


def test_a_dismissed_suggestion_stays_away_until_typing(ghost: Ghost) -> None:
    """The next key may request a new one."""
    ghost.type("ia")
    ghost.wait_asked(1)
    ghost.answer(1, "one")
    ghost.type("<F7>")
    ghost.pause()
    assert (ghost.shown(), len(ghost.asked())) == ("", 1)


def test_undo_removes_a_visible_suggestion(ghost: Ghost) -> None:
    """The suggestion was never in the buffer, and no trace of it stays on the screen."""
    ghost.type("ione <Esc>atwo ")
    ghost.wait_asked(1)
    ghost.answer(1, "three")
    assert ghost.shown() == "three"
    ghost.type("<C-o>:silent undo<CR>")  # the message of `u` would be waited for
    assert (ghost.nvim.lines(), ghost.shown()) == (["one "], "")
    ghost.type("<F2>")
    assert ghost.nvim.lines() == ["one "]


def test_rereading_the_file_removes_a_visible_suggestion(ghost: Ghost) -> None:
    """This applies to `:e!` from insert mode."""
    ghost.nvim.command("write | imap <F9> <Cmd>edit!<CR>")
    ghost.type("ione ")
    ghost.wait_asked(1)
    ghost.answer(1, "two")
    ghost.type("<F9>")
    assert (ghost.nvim.lines(), ghost.shown()) == ([""], "")
    ghost.type("<F2>x")
    assert ghost.nvim.lines() == ["x"]


def test_crlf_files_get_no_carriage_returns(ghost: Ghost) -> None:
    """A server may answer with the line ends it was sent."""
    ghost.nvim.command("set fileformat=dos")
    ghost.type("ia")
    ghost.wait_asked(1)
    ghost.answer(1, "b\r\nc")
    ghost.type("<F2>")
    assert ghost.nvim.lines() == ["ab", "c"]


def test_accepted_text_is_not_typed(ghost: Ghost) -> None:
    """'textwidth', abbreviations, indenting and mappings do not apply; `vim.paste` is restored."""
    ghost.nvim.command("set textwidth=20 autoindent cindent | iabbrev teh the | inoremap ( ()<Left>")
    ghost.nvim.lua("_G.pasted = 0; vim.paste = function() _G.pasted = _G.pasted + 1 end; _G.mine = vim.paste")
    ghost.type("i    x")
    ghost.wait_asked(1)
    text = " = (teh teh teh teh teh teh\n  teh {\n      }"
    ghost.answer(1, text)
    ghost.type("<F2>")
    assert ghost.nvim.lines() == ["    x" + text.split("\n")[0], *text.split("\n")[1:]]
    assert ghost.nvim.lua("return { _G.pasted, vim.paste == _G.mine }") == [0, True]


def test_a_failing_server_is_reported_once_and_left_alone(ghost: Ghost) -> None:
    """The failure is reported once, quietly, and requests are retried with backoff.

    A manual request is sent immediately.
    """
    trouble = "Ollama does not answer at http://localhost:11434"
    ghost.type("ia")
    ghost.wait_asked(1)
    ghost.answer(1, failed=True, why=trouble)
    ghost.type("b")
    ghost.pause()
    assert len(ghost.asked()) == 1, "left alone for a second"
    assert trouble not in ghost.nvim.messages(), "nobody is disturbed while typing"
    ghost.type("<Esc>")
    ghost.nvim.wait_for(lambda: trouble in ghost.nvim.screen(), "the sentence")
    ghost.type("a")
    assert f"{trouble}; retries in Insert mode, in 1 s at the earliest" in ghost.status()
    assert ghost.nvim.lua("return require('codecompanion').completion_statusline()") == "no suggestions"
    ghost.type("<F8>")
    ghost.wait_asked(2)
    ghost.answer(2, failed=True, why=trouble)
    ghost.type("<F8>")
    ghost.wait_asked(3)
    ghost.answer(3, "c")
    assert ghost.shown() == "c"
    assert ghost.nvim.messages().count(trouble) == 1
    assert not ghost.nvim.blocked()


def test_a_host_that_exits_during_a_request_is_restarted_by_the_next(ghost: Ghost) -> None:
    """The next request starts the host again and receives its answer."""
    ghost.type("ia")
    ghost.wait_asked(1)
    ghost.answer(1, error="The Python process ended (status 137). The next action starts it again.")
    assert ghost.shown() == ""
    ghost.type("b<F8>")
    ghost.wait_asked(2)
    ghost.answer(2, "c")
    assert ghost.shown() == "c"


def test_an_empty_answer_is_reported_for_a_manual_request(ghost: Ghost) -> None:
    """For an automatic request it is never reported."""
    ghost.type("ia")
    ghost.wait_asked(1)
    ghost.answer(1)
    assert ghost.shown() == ""
    ghost.type("<F8>")
    ghost.wait_asked(2)
    ghost.answer(2, why="The model has nothing to add")
    assert ghost.nvim.screen().split("\n")[0] == "a no suggestions: The model has nothing to add"
    ghost.type("<F2>")
    assert ghost.nvim.lines() == ["a"]
    ghost.type("b")
    assert ghost.nvim.screen().split("\n")[0] == "ab"
