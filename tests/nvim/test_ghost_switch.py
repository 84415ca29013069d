"""Enabling and disabling completion: startup, commands, keys, status, checkhealth (R-262)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ghost import OPTIONS, Ghost, start
from harness import Nvim

LOADED = (
    "return vim.tbl_filter(function(name) return name:find('codecompanion.inline', 1, true) end,"
    " vim.tbl_keys(package.loaded))"
)
AUTOCMDS = "return #vim.api.nvim_get_autocmds({ group = 'codecompanion.complete' })"


def test_off_costs_nothing(nvim_factory: Callable[..., Nvim]) -> None:
    """R-262: completion is off by default.

    There are only the <Plug> mappings, without autocommands or requests, whatever is typed.
    """
    ghost = start(nvim_factory, options={"enabled": False})
    ghost.open("a.py")
    assert ghost.nvim.lua(LOADED) == ["codecompanion.inline.begin"]
    ghost.type("ifor i in <Esc>")
    assert set(ghost.nvim.lua(LOADED)) == {"codecompanion.inline.begin", "codecompanion.inline.plug_maps"}
    assert ghost.nvim.lua(AUTOCMDS) == 0
    assert ghost.nvim.lua("return require('codecompanion').completion_statusline()") == ""
    assert ghost.nvim.lua("return require('codecompanion').accept_completion()") is False
    assert ghost.nvim.lua("return require('codecompanion').has_completion()") is False
    assert ghost.asked() == []


def test_enabled_completion_starts_with_the_first_insert_mode(nvim_factory: Callable[..., Nvim]) -> None:
    """No completion code is loaded at startup, and the host receives its first request after the first pause."""
    ghost = start(nvim_factory)
    ghost.nvim.lua("require('codecompanion.host').requests = {}")
    assert ghost.nvim.lua(LOADED) == ["codecompanion.inline.begin"]
    assert ghost.nvim.lua(AUTOCMDS) == 2  # into Insert mode and out of it
    ghost.suggest("x")
    ghost.open("a.py")
    ghost.type("ia")
    ghost.wait_shown("x")
    assert ghost.nvim.lua("return #require('codecompanion.host').requests") == 1


def test_the_command_toggles_it(nvim_factory: Callable[..., Nvim]) -> None:
    """`:CodeCompanion complete on|off|status` works, and its output is correct."""
    ghost = start(nvim_factory, options={"enabled": False}, size=(160, 16))
    ghost.open("a.py")
    ghost.suggest("x")
    ghost.type(":CodeCompanion complete<CR>")
    ghost.nvim.wait_screen("Completion is off; :CodeCompanion complete on switches it on")
    ghost.type(":CodeCompanion complete on<CR>")
    ghost.nvim.wait_screen(r"Completion is on \(ollama, qwen2.5-coder\)")
    ghost.type("ia")
    ghost.wait_shown("x")
    ghost.nvim.command("CodeCompanion complete off")
    ghost.wait_shown("")
    ghost.type("b")
    ghost.pause()
    assert len(ghost.asked()) == 1
    assert ghost.nvim.lua(AUTOCMDS) == 0
    ghost.type("<Esc>:CodeCompanion complete maybe<CR>")
    ghost.nvim.wait_screen(r"Usage: :CodeCompanion complete \[on\|off\|status\]")
    assert ghost.nvim.lua("return vim.fn.getcompletion('CodeCompanion complete o', 'cmdline')") == ["off", "on"]


def test_it_can_be_enabled_from_the_start(nvim_factory: Callable[..., Nvim]) -> None:
    """`enabled = true` also applies before insert mode is first entered, and completion can be disabled then."""
    ghost = start(nvim_factory, size=(160, 16))
    ghost.open("a.py")
    ghost.suggest("x")
    ghost.type(":CodeCompanion complete status<CR>")
    ghost.nvim.wait_screen(r"Completion is on \(ollama, qwen2.5-coder\)")
    ghost.type("ia")
    ghost.wait_shown("x")
    ghost = start(nvim_factory, size=(160, 16))
    ghost.type(":CodeCompanion complete off<CR>")
    ghost.nvim.wait_screen("Completion is off")
    ghost.type("ia")
    ghost.pause()
    assert ghost.asked() == []


def test_a_manual_request_first_leaves_it_on(nvim_factory: Callable[..., Nvim]) -> None:
    """With `enabled = true`, running `:CodeCompanionComplete` before the first insert keeps suggestions automatic."""
    ghost = start(nvim_factory)
    ghost.open("a.py")
    ghost.hold()
    ghost.type(":CodeCompanionComplete<CR>")
    ghost.wait_asked(1)
    ghost.suggest("x")
    ghost.type("a")
    ghost.wait_shown("x")


def test_a_manual_trigger_requests_only_on_command(nvim_factory: Callable[..., Nvim]) -> None:
    """R-261, R-262: trigger = "manual"; a request from normal mode enters insert mode after the cursor."""
    ghost = start(nvim_factory, options={"trigger": "manual"})
    ghost.nvim.command("map <F8> <Plug>(CodeCompanionComplete)| imap <F8> <Plug>(CodeCompanionComplete)")
    ghost.nvim.command("imap <F2> <Plug>(CodeCompanionCompleteAccept)")
    ghost.open("a.py", "x = f", (1, 4))
    ghost.suggest("oo()")
    ghost.type("A")
    ghost.pause()
    assert ghost.asked() == []
    ghost.type("<Esc>")
    assert ghost.status().endswith("; :CodeCompanionComplete asks for suggestions")
    ghost.type("<F8>")
    ghost.wait_shown("oo()")
    assert ghost.asked()[0]["manual"] is True
    ghost.type("<F2>")
    assert ghost.nvim.lines() == ["x = foo()"]
    ghost.pause()
    assert len(ghost.asked()) == 1, "the next one only when it is asked for"
    ghost.type("<F8>")
    ghost.wait_asked(2)


def test_a_manual_request_does_not_enable_it(nvim_factory: Callable[..., Nvim]) -> None:
    """R-262: the command works while completion is off, and nothing is automatic afterwards."""
    ghost = start(nvim_factory, options={"enabled": False})
    ghost.nvim.command("imap <F8> <Plug>(CodeCompanionComplete)")
    ghost.open("a.py")
    ghost.suggest("x")
    ghost.type("ia<F8>")
    ghost.wait_shown("x")
    ghost.type("b")
    ghost.pause()
    assert len(ghost.asked()) == 1
    assert ghost.status().endswith("; :CodeCompanionComplete asks for suggestions")
    ghost.nvim.command("CodeCompanion complete on")
    ghost.type("c")
    ghost.wait_asked(2)


def test_a_request_in_an_unsuitable_place_gives_the_reason(nvim_factory: Callable[..., Nvim]) -> None:
    """The reason is shown at the cursor, because 'showmode' uses the command line in insert mode."""
    ghost = start(nvim_factory)
    ghost.nvim.command("imap <F8> <Plug>(CodeCompanionComplete)")
    ghost.open("a.py", "x")
    ghost.nvim.command("setlocal readonly")
    ghost.type("A<F8>")
    assert ghost.nvim.screen().split("\n")[0] == "x no suggestions: the file is read-only"


def test_keys_keep_their_function_without_a_suggestion(nvim_factory: Callable[..., Nvim]) -> None:
    """For `completion.keymaps`, an earlier mapping runs instead, and it is restored after `complete off`."""
    ghost = start(
        nvim_factory,
        options={"keymaps": {"accept": ["<Tab>", "<C-l>"], "accept_word": "<F3>", "dismiss": "<F4>", "next": "<F5>"}},
        init="vim.keymap.set('i', '<C-l>', function() return 'L' end, { expr = true })\n"
        "vim.keymap.set('i', '<F3>', '<Left>!', { remap = true })\n"
        "vim.keymap.set('i', '<F4>', function() _G.called = true end)\n"
        "vim.cmd.inoremap('<expr> <F5> \"five\"')\n",
    )
    ghost.open("a.txt")
    ghost.nvim.command("set expandtab shiftwidth=2 softtabstop=2")
    tab = ghost.nvim.lua("return vim.fn.maparg('<Tab>', 'i')")
    ghost.hold()
    ghost.type("ix")
    ghost.nvim.wait_lua("return require('codecompanion.inline.completion_status').is_on")
    ghost.type("<Tab>a<C-l><F3><F4><F5>")
    assert ghost.nvim.lines() == ["x a!fiveL"]
    assert ghost.nvim.lua("return _G.called")
    ghost.suggest("one two three")
    ghost.type("<Esc>cc")
    ghost.wait_shown("one two three")
    ghost.hold()
    ghost.type("<F3>")
    assert (ghost.nvim.lines(), ghost.shown()) == (["one"], " two three")
    ghost.type("<Tab>")
    assert ghost.nvim.lines() == ["one two three"]
    ghost.nvim.command("CodeCompanion complete off")
    ghost.type("<Esc>cc<C-l><F5><Tab>.")
    assert ghost.nvim.lines() == ["Lfive ."]
    assert ghost.nvim.lua("return vim.fn.maparg('<Tab>', 'i')") == tab
    assert ghost.nvim.lua("return vim.fn.maparg('<F3>', 'i')") == "<Left>!"


def test_unmapped_keys_keep_neovims_function(nvim_factory: Callable[..., Nvim]) -> None:
    """As without the plugin, the keys recommended in the help insert no letter when there is no suggestion."""
    keys = ("<M-l>", "<M-w>", "<M-j>", "<F9>")
    texts = {}
    for keymaps in ({}, {"accept": list(keys)}):
        ghost = start(nvim_factory, options={"keymaps": keymaps})
        ghost.hold()
        ghost.nvim.command("nmap l ix<Esc>")  # a key after <Esc> is mapped as usual
        ghost.open("a.txt", "one two\nthree")
        ghost.type("i")
        ghost.nvim.wait_lua("return require('codecompanion.inline.completion_status').is_on")
        found = texts.setdefault(bool(keymaps), {})
        for key in keys:
            ghost.type("<Esc>ggcc")
            ghost.type("a b c")
            ghost.type(key)
            found[key] = (
                ghost.nvim.lua("return vim.fn.mode()"),
                ghost.nvim.lines(),
                ghost.nvim.lua("return vim.fn.getpos('.')"),
            )
            ghost.type("<Esc>")
    assert texts[True] == texts[False]
    assert texts[True]["<M-w>"][:2] == ("n", ["a b c", "three"])


def test_an_alt_key_pressed_after_the_last_word_stays_in_insert_mode(nvim_factory: Callable[..., Nvim]) -> None:
    """As without the plugin, the key leaves insert mode only if it is pressed later."""
    ghost = start(nvim_factory, options={"keymaps": {"accept_word": "<M-w>"}})
    ghost.open("a.txt")
    ghost.suggest("one two")
    ghost.type("ix")
    ghost.wait_shown("one two")
    ghost.hold()
    ghost.type("<M-w><M-w><M-w><M-w>y")
    assert ghost.nvim.lines() == ["xone twoy"]
    ghost.nvim.lua("local uv = vim.uv or vim.loop local now = uv.now uv.now = function() return now() + 2000 end")
    ghost.type("<M-w>")
    assert ghost.nvim.lua("return vim.fn.mode()") == "n"


def test_the_keys_of_the_help_are_harmless_without_a_suggestion(nvim_factory: Callable[..., Nvim]) -> None:
    """They move the cursor at most: the text and insert mode stay as they are."""
    page = (Path(__file__).parents[2] / "doc/codecompanion.txt").read_text()
    keymaps = dict(re.findall(r'^ +(accept|accept_line|accept_word|next|previous|dismiss) = "(\S+)",$', page, re.M))
    assert len(keymaps) == 6
    ghost = start(nvim_factory, options={"keymaps": keymaps})
    ghost.open("a.c", "one two\nthree four\nfive", (2, 4))
    ghost.hold()
    ghost.type("i")
    ghost.nvim.wait_lua("return require('codecompanion.inline.completion_status').is_on")
    for key in keymaps.values():
        ghost.type(key)
        assert ghost.nvim.lua("return vim.fn.mode()") == "i", key
        assert ghost.nvim.lines() == ["one two", "three four", "five"], key


def test_an_earlier_mapped_function_may_change_the_text(nvim_factory: Callable[..., Nvim]) -> None:
    """Mappings of snippet plugins do that.

    The result of an <expr> mapping is remapped only if that was the case before.
    """
    ghost = start(
        nvim_factory,
        options={"keymaps": {"accept": "<M-l>", "next": "<F5>"}},
        init="vim.keymap.set('i', '<M-l>', function() vim.api.nvim_put({ 'put' }, 'c', false, true) end)\n"
        "vim.cmd.imap([[<expr> <F5> \"\\<lt>Plug>(x)\"]])\nvim.cmd.inoremap('<Plug>(x) plugged')\n",
    )
    ghost.hold()
    ghost.open("a.txt")
    ghost.type("ix")
    ghost.nvim.wait_lua("return require('codecompanion.inline.completion_status').is_on")
    ghost.type("<M-l>y<F5>")
    assert ghost.nvim.lines() == ["xputyplugged"]
    assert ghost.nvim.messages() == ""


def test_the_tab_key_of_the_help_shares_it_with_snippets(nvim_factory: Callable[..., Nvim]) -> None:
    """Help: |codecompanion-complete-tab|."""
    ghost = start(nvim_factory)
    ghost.nvim.lua(
        """
        vim.keymap.set("i", "<Tab>", function()
          if require("codecompanion").accept_completion() then
            return ""
          elseif vim.snippet.active({ direction = 1 }) then
            return "<Cmd>lua vim.snippet.jump(1)<CR>"
          end
          return "<Tab>"
        end, { expr = true })
        """
    )
    ghost.open("a.txt")
    ghost.suggest("TAKEN")
    ghost.type("ix")
    ghost.wait_shown("TAKEN")
    ghost.hold()
    ghost.type("<Tab>")
    assert ghost.nvim.lines() == ["xTAKEN"]
    ghost.type("<Tab>y")
    assert ghost.nvim.lines() == ["xTAKEN\ty"]
    ghost.nvim.lua("vim.snippet.expand('($1, $2)')")
    ghost.type("<Tab>z")
    assert ghost.nvim.lines() == ["xTAKEN\ty(, z)"]


def test_a_second_setup_applies(nvim_factory: Callable[..., Nvim]) -> None:
    """This applies to changed options and to disabling completion."""
    ghost = start(nvim_factory)
    ghost.open("a.txt")
    ghost.suggest("x")
    ghost.type("ia")
    ghost.wait_shown("x")
    again = {"python": {"host_prog": sys.executable}, "completion": {**OPTIONS, "filetypes": {"text": False}}}
    ghost.nvim.lua("require('codecompanion').setup(...)", again)
    ghost.wait_shown("")
    ghost.nvim.wait_for(lambda: "is false for text" in ghost.status(), "the new configuration")
    ghost.nvim.lua("require('codecompanion').setup({})")
    ghost.nvim.wait_for(lambda: "Completion is off" in ghost.status(), "off")


def test_without_the_python_packages_the_remedy_is_shown(nvim_factory: Callable[..., Nvim]) -> None:
    """Typing never starts an installation."""
    ghost = Ghost(nvim_factory(size=(120, 16)))
    ghost.nvim.lua("require('codecompanion').setup({ completion = { enabled = true, debounce = 50 } })")
    ghost.open("a.txt")
    ghost.type("ia")
    ghost.nvim.wait_lua("return require('codecompanion.inline.source').state().why ~= ''")
    ghost.type("<Esc>")
    ghost.nvim.wait_screen("No suggestions: the Python packages are not installed; run :CodeCompanion install")
    assert ghost.nvim.lua("return require('codecompanion.host').status()") == "stopped"


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"enabled": False}, "Off; completion = { enabled = true } or :CodeCompanion complete on switches it on"),
        ({}, "qwen2.5-coder at ollama, after a pause of 50 ms"),
        ({"url": "http://me:secret@host:1"}, "qwen2.5-coder at ollama http://host:1, after a pause of 50 ms"),
        ({"trigger": "manual"}, "qwen2.5-coder at ollama, when you ask"),
        ({"keymaps": {"accept": "<F2>"}, "adaptive": True}, "after a pause of about 50 ms"),
    ],
)
def test_checkhealth_shows_the_completion_settings(
    nvim_factory: Callable[..., Nvim], options: dict[str, object], wanted: str
) -> None:
    """A password in the URL is not shown."""
    ghost = start(nvim_factory, options=options)
    ghost.nvim.lua(
        "local found, health = {}, vim.health _G.found = found"
        " for _, name in ipairs({ 'start', 'ok', 'info', 'warn', 'error' }) do"
        " health[name] = function(text) table.insert(found, text) end end"
        " local module = require('codecompanion.health')"
        " for i = 1, 20 do local name, value = debug.getupvalue(module.check, i)"
        " if name == 'check_completion' then value() end end"
    )
    found = "\n".join(ghost.nvim.lua("return _G.found"))
    assert found.startswith("Completion at the cursor\n")
    assert wanted in found
    assert "secret" not in found
    no_key = "No key inserts a suggestion" in found
    assert no_key == (options.get("enabled", True) and "keymaps" not in options)


DOWN = (
    "completion: no connection to http://127.0.0.1:11439 (connection refused). Is the server running?"
    " Its address is completion.url."
)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (60, "^No suggestions: no connection to 127.0.0.1:11439$"),
        (80, "^No suggestions: no connection to http://127.0.0.1:11439$"),
        (120, r"no connection to http://127.0.0.1:11439 \(connection refused\)$"),
        (240, "No suggestions: " + re.escape(DOWN)),
    ],
)
def test_an_unreachable_server_is_reported_in_one_row(
    nvim_factory: Callable[..., Nvim], columns: int, said: str
) -> None:
    """The cause is never cut off after leaving insert mode.

    `complete status` shows the full message in several rows.
    """
    ghost = start(nvim_factory, size=(columns, 8))
    ghost.open("a.py")
    ghost.suggest(failed=True, why=DOWN)
    ghost.type("ix")
    ghost.nvim.wait_lua("return require('codecompanion.inline.source').state().is_failure")
    ghost.type("<Esc>")
    ghost.nvim.wait_for(lambda: re.search(said, last_row(ghost)), f"{said!r} in the last row")
    for _ in range(3):  # the next try is seconds away
        ghost.nvim.lua("require('codecompanion.inline.request_pace').failed()")
    assert "…" not in ghost.nvim.screen()
    assert not ghost.nvim.blocked()
    ghost.suggest(address="http://127.0.0.1:11439")
    ghost.nvim.feed(":CodeCompanion complete status<CR>")
    ghost.nvim.wait_lua("return vim.api.nvim_win_get_config(0).relative ~= ''")
    lines = ghost.nvim.lines()
    assert lines[0] == "Completion is on (ollama, qwen2.5-coder, http://127.0.0.1:11439)"
    assert lines[1] == "No suggestions: " + DOWN.removeprefix("completion: ")
    assert re.fullmatch(r"Retries in Insert mode, in [78] s at the earliest", lines[2])
    assert not ghost.nvim.blocked()


def last_row(ghost: Ghost) -> str:
    """Return the last row of the screen."""
    return ghost.nvim.screen().split("\n")[-1].rstrip()


def test_status_asks_the_host_for_missing_facts(nvim_factory: Callable[..., Nvim]) -> None:
    """R-266: a secret file is reported before anything is typed, and the server receives no request."""
    ghost = start(nvim_factory)
    ghost.suggest(off=True, why=".env may contain secrets")
    ghost.open(".env", "KEY=")
    ghost.type(":CodeCompanion complete status<CR>")
    ghost.nvim.wait_screen("off here: .env may contain secrets")
    assert [question["count"] for question in ghost.asked()] == [0]
    ghost.type("Ax")
    ghost.pause()
    assert len(ghost.asked()) == 1


@pytest.mark.parametrize(
    ("why", "shortest"),
    [
        (DOWN, "no connection"),
        ("completion: the connection was lost.", "the connection was lost"),
        ("completion: Ollama has no model me/coder:7b: ollama pull me/coder:7b", "ollama pull me/coder:7b"),
        (
            "completion: nothing found at http://127.0.0.1:1/x/infill (404). Check completion.url and"
            " completion.endpoint. The provider says: 404 page not found.",
            "nothing found at 127.0.0.1:1/x/infill",
        ),
        ("completion: no answer from http://127.0.0.1:1 within 2 s (completion.timeout).", "no answer within 2 s"),
        (
            "completion: http://127.0.0.1:1 answered with text/html (a web page titled “Login”) instead of code."
            " Check completion.url and the proxy.",
            "got text/html instead of code",
        ),
        ("completion: the answer is larger than 1 MB.", "the answer is larger than 1 MB"),
        (
            "completion: the provider failed (503). The provider says: Loading model.",
            "the provider failed: Loading model",
        ),
        (
            "the Python packages are not installed; run :CodeCompanion install",
            "not installed; run :CodeCompanion install",
        ),
        ("", ""),
    ],
)
def test_a_reason_is_shortened_on_a_narrow_screen(nvim_factory: Callable[..., Nvim], why: str, shortest: str) -> None:
    """The host's sentences are shortened; each form drops something, and none is empty."""
    forms = nvim_factory().lua("return require('codecompanion.inline.short_reasons')(...)", why)
    assert (forms[0], forms[-1]) == (why, shortest)
    assert len(set(forms)) == len(forms)


def notices(ghost: Ghost) -> list[str]:
    """Return the failure notices next to the text in the current buffer."""
    texts: list[str] = ghost.nvim.lua(
        "local ns = vim.api.nvim_create_namespace('codecompanion.ghost_notice')"
        " return vim.tbl_map(function(mark) return mark[4].virt_text[1][1] end,"
        " vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true }))"
    )
    return texts


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (60, "no suggestions: no connection to http://127.0.0.1:11439"),
        (90, "no suggestions: no connection to 127.0.0.1:11439 · :CodeCompanion complete status"),
    ],
)
def test_a_failure_is_shown_once_during_typing(nvim_factory: Callable[..., Nvim], columns: int, told: str) -> None:
    """It is shown dimmed on the cursor line for a few seconds, and again only after a success or for another cause."""
    ghost = start(nvim_factory, size=(columns, 8))
    ghost.nvim.command("imap <F8> <Plug>(CodeCompanionComplete)")
    ghost.nvim.lua(
        "local defer = vim.defer_fn"
        " vim.defer_fn = function(f, ms) if ms > 5000 then _G.later = f else return defer(f, ms) end end"
    )
    ghost.open("a.py")
    ghost.hold()
    ghost.type("iy = ")
    ghost.wait_asked(1)
    ghost.answer(1, failed=True, why=DOWN)
    assert notices(ghost) == [told]
    assert ghost.nvim.screen().split("\n")[0].rstrip() == f"y =  {told}"
    ghost.type("x")
    assert notices(ghost) == [told], "whoever types on has not read it yet"
    ghost.nvim.lua("_G.later()")
    assert notices(ghost) == []
    for number, why, is_shown in [
        (2, DOWN, False),
        (3, "completion: Ollama has no model x: ollama pull x", True),
        (4, "", False),
        (5, DOWN, True),
    ]:
        ghost.nvim.lua(
            "local pace = require('codecompanion.inline.request_pace') pace.rest_ms = function() return 0 end"
        )
        ghost.type("x")
        ghost.wait_asked(number)
        ghost.answer(number, failed=why != "", why=why)
        assert bool(notices(ghost)) == is_shown, why
        ghost.nvim.lua("_G.later()")


def test_a_recovered_server_is_asked_without_a_key(nvim_factory: Callable[..., Nvim]) -> None:
    """A user waiting in insert mode receives the suggestion; outside insert mode nothing is sent."""
    ghost = start(nvim_factory)
    ghost.open("a.py")
    ghost.hold()
    ghost.type("iy = ")
    ghost.wait_asked(1)
    ghost.nvim.lua("require('codecompanion.inline.request_pace').rest_ms = function() return 80 end")
    ghost.answer(1, failed=True, why=DOWN)
    ghost.nvim.lua("require('codecompanion.inline.request_pace').rest_ms = function() return 0 end")
    ghost.wait_asked(2)
    ghost.answer(2, "1")
    assert ghost.shown() == "1"
    assert notices(ghost) == []


def test_invalid_options_are_named_in_the_status(nvim_factory: Callable[..., Nvim]) -> None:
    """For an invalid `endpoint` the default applies; the status shows both, with the URL in use."""
    ghost = start(nvim_factory, options={"endpoint": "olama", "url": "127.0.0.1:18432"})
    ghost.open("a.py")
    ghost.suggest(address="http://127.0.0.1:18432")
    ghost.nvim.feed(":CodeCompanion complete status<CR>")
    ghost.nvim.wait_screen("An invalid completion option is ignored; see :CodeCompanion problems")
    assert "(ollama, qwen2.5-coder, http://127.0.0.1:18432)" in ghost.nvim.screen()
    assert ghost.nvim.lua("return require('codecompanion.config').options.completion.url") == "http://127.0.0.1:18432"


def test_ghost_text_is_distinct_from_code_without_truecolor(nvim_factory: Callable[..., Nvim]) -> None:
    """In 256-colour terminals, the linked group has no colour of its own in Neovim's default scheme.

    A user's definition is kept.
    """
    ghost = start(nvim_factory)
    ghost.type("i<Esc>")
    ghost.nvim.wait_lua("return require('codecompanion.inline.completion_status').is_on")
    hl = "return vim.api.nvim_get_hl(0, { name = ..., link = false })"
    for name in ("CodeCompanionGhost", "CodeCompanionGhostHint"):
        found = ghost.nvim.lua(hl, name)
        assert found["ctermfg"] == 244
        assert found["cterm"]["italic"]
        assert found["fg"] == ghost.nvim.lua(hl, "NonText" if name.endswith("Ghost") else "Comment")["fg"]
    ghost.nvim.lua("vim.cmd('hi clear | hi NonText ctermfg=3 | doautocmd ColorScheme')")
    assert ghost.nvim.lua(hl, "CodeCompanionGhost")["ctermfg"] == 3


def test_status_does_not_wait_long_for_the_host(nvim_factory: Callable[..., Nvim]) -> None:
    """It shows the facts known so far, and adds the URL once the host has started."""
    ghost = start(nvim_factory, size=(100, 8))
    ghost.open("a.py")
    ghost.hold()
    ghost.type(":CodeCompanion complete status<CR>")
    ghost.nvim.wait_screen(r"Completion is on \(ollama, qwen2.5-coder\)")
    ghost.answer(1, address="http://127.0.0.1:11434")
    ghost.nvim.wait_screen(r"Completion is on \(ollama, qwen2.5-coder, http://127.0.0.1:11434\)")
    ghost.nvim.lua("vim.bo.filetype = 'codecompanion'")
    ghost.type(":CodeCompanion complete status<CR>")
    ghost.nvim.wait_screen("off here: this is a chat; suggestions are for files")
