"""Rows for options of the editor: keys, windows, drawing, mentions."""

from __future__ import annotations

from collections.abc import Iterator

from tests.options import editor_scenes as editor
from tests.options.row import Row

BUFFER = "display = { chat = { window = { layout = 'buffer' } } }"
"""Makes the chat fill the whole screen."""
TELLING = f"{{ {BUFFER}, interactions = {{ chat = {{ keymaps = _G.options_test.telling_keys() }} }} }}"
CHAT_KEYS = (
    "options completion send regenerate edit_message close stop clear codeblock yank_code next_chat previous_chat"
    " next_header previous_header change_adapter attach_path toggle_live toggle_fold debug preview show_original"
    " next_change previous_change revert_change open_file restore undo redo system_prompt yolo_mode trust next_approval"
    " mine"
).split()

EDITOR_ITEMS = "buffer buffers selection viewport diagnostics quickfix diff file lsp terminal messages mine".split()
WITH_ARGUMENT = ("buffer", "diagnostics", "diff", "file", "terminal", "mine")


def rows() -> Iterator[Row]:
    """Yield all rows of this module."""
    yield from _of_chat_keys()
    yield from _of_display()
    yield from _of_editor_context()
    yield from _of_decisions()
    yield from _of_slash_commands()


def _of_chat_keys() -> Iterator[Row]:
    mine = "mine = { modes = { n = '<F6>' }, description = 'Mine', callback = print }"
    with_mine = f"{{ {BUFFER}, interactions = {{ chat = {{ keymaps = {{ {mine} }} }} }} }}"
    for name in CHAT_KEYS:
        path = f"interactions.chat.keymaps.{name}"
        for mode in "niv":
            yield Row(f"{path}.modes.{mode}", "'<F5>'", editor.pressed, TELLING)
        says = "function() table.insert(_G.options_test.pressed, 'another') end"
        yield Row(f"{path}.callback", says, editor.pressed, TELLING)
        yield Row(f"{path}.opts", "{ nowait = false }", editor.pressed, TELLING)
        yield Row(f"{path}.description", "'Does something else'", editor.keys_window, with_mine)


def _of_display() -> Iterator[Row]:
    window = "display.chat.window"
    for option, value in {
        "roles.llm": "'Robot'",
        "roles.user": "'You'",
    }.items():
        yield Row(f"interactions.chat.{option}", value, editor.drawn, f"{{ {BUFFER} }}")
    for option, value in {
        "auto_scroll": "false",
        "intro_message": "'Good morning.'",
        "show_header_separator": "true",
        "show_context": "false",
        "fold_context": "true",
        "show_reasoning": "false",
        "fold_reasoning": "false",
        "fold_tools": "false",
        "show_token_count": "false",
        "token_count": "function(tokens) return tokens .. ' pencils' end",
        "start_in_insert_mode": "true",
        "window.buflisted": "true",
        "window.opts": "{ number = true }",
    }.items():
        yield Row(f"display.chat.{option}", value, editor.drawn, f"{{ {BUFFER} }}")
    lines = "{ display = { chat = { show_header_separator = true, window = { layout = 'buffer' } } } }"
    yield Row("display.chat.separator", "'='", editor.drawn, lines)
    yield Row("display.chat.winbar", "'always'", editor.drawn, f"{{ {BUFFER} }}")
    no_bar = "{ display = { chat = { winbar = 'never', window = { layout = 'float' } } } }"
    yield Row("display.chat.show_meter", "false", editor.drawn, no_bar)
    yield Row("display.chat.notify_unseen", "false", editor.unseen, f"{{ {BUFFER} }}")
    yield Row("interactions.chat.opts.completion_provider", "'blink'", editor.completed, f"{{ {BUFFER} }}")
    yield Row("display.chat.tabline", "false", editor.drawn, _window("layout = 'tab'"))
    yield Row(f"{window}.layout", "'horizontal'", editor.drawn, "{}")
    yield Row(f"{window}.position", "'left'", editor.drawn, _window("position = 'right'"))
    yield Row(f"{window}.full_height", "false", editor.drawn, "{}")
    yield Row(f"{window}.width", "70", editor.drawn, "{}")
    yield Row(f"{window}.min_width", "75", editor.drawn, "{}")
    yield Row(f"{window}.narrow_layout", "'tab'", editor.drawn, _window("min_width = 110"))
    yield Row(f"{window}.height", "9", editor.drawn, _window("layout = 'horizontal'"))
    yield Row(f"{window}.border", "'double'", editor.drawn, _window("layout = 'float'"))
    yield Row(f"{window}.relative", "'cursor'", editor.drawn, _window("layout = 'float', width = 40, height = 9"))


def _window(more: str) -> str:
    return f"{{ display = {{ chat = {{ window = {{ {more} }} }} }} }}"


def _of_editor_context() -> Iterator[Row]:
    def items(how: str, more: str = "") -> str:
        chat = f"chat = {{ editor_context = _G.options_test.own_items({{ {how} }}) }}"
        return f"{{ {BUFFER}, interactions = {{ {chat} }}, {more} }}"

    scene = editor.mentioned
    for name in EDITOR_ITEMS:
        path = f"interactions.chat.editor_context.{name}"
        yield Row(f"{path}.callback", "function() return 'another text' end", scene, items(""))
        yield Row(f"{path}.description", "'Gives something else'", scene, items(""))
        yield Row(f"{path}.opts.async", "true", scene, items(""))
        yield Row(f"{path}.opts.timeout", "1", scene, items("async = true, silent = true"))
        yield Row(f"{path}.opts.has_params", "false" if name in WITH_ARGUMENT else "true", scene, items(""))
        yield Row(f"{path}.opts.complete", "function() return { 'pencil' } end", scene, items("has_params = true"))
        no_code = items("contains_code = true", "opts = { send_code = false }")
        yield Row(f"{path}.opts.contains_code", "false", scene, no_code)


def _of_decisions() -> Iterator[Row]:
    names = {
        "shared": "accept_change reject_change always_accept cancel skip_hunk next_hunk previous_hunk view_diff",
        "inline": "options stop retry follow_up open_chat accept_change reject_change always_accept",
    }
    keys = f"{{ {BUFFER}, interactions = _G.options_test.deciding_keys() }}"
    for where in names:
        for name in names[where].split():
            for mode in "niv":
                path = f"interactions.{where}.keymaps.{name}.modes.{mode}"
                yield Row(path, "'<F5>'", editor.decided, keys)


def _of_slash_commands() -> Iterator[Row]:
    says = "function(_, argument) table.insert(_G.options_test.pressed, { 'mine', argument }) end"

    def around(more: str = "") -> str:
        mine = f"mine = {{ callback = {says}, {more} }}"
        chat = f"chat = {{ slash_commands = {{ {mine} }} }}"
        return f"{{ {BUFFER}, interactions = {{ {chat} }}, opts = {{ send_code = CODE }} }}"

    path, with_code = "interactions.chat.slash_commands.mine", "true"
    for option, value, more in (
        ("callback", says.replace("'mine'", "'another'"), ""),
        ("description", "'Says something else.'", "description = 'Says it.'"),
        ("argument", "'[words]'", ""),
        ("multiline", "true", "argument = '[words]'"),
        ("complete", "function() return { 'pencil' } end", "argument = '[words]'"),
        ("enabled", "false", ""),
    ):
        yield Row(f"{path}.{option}", value, editor.commanded, around(more).replace("CODE", with_code))
    without = around("argument = '[words]'").replace("CODE", "false")
    yield Row(f"{path}.opts.contains_code", "true", editor.commanded, without)
    coded = around("opts = { contains_code = true }").replace("CODE", with_code)
    yield Row("opts.send_code", "false", editor.commanded, coded)
