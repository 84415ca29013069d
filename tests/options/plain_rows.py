"""Rows for options of the editor that need no chat buffer."""

from __future__ import annotations

from collections.abc import Iterator

from tests.options import plain_scenes as plain
from tests.options.row import TOOLS, Row

OPENAI = "interactions = { chat = { adapter = 'openai' } }"
PROMPT = "{ name = 'Mine', description = 'Asks', prompts = { { role = 'user', content = 'WORDS' } } }"


def rows() -> Iterator[Row]:
    """Yield all rows of this module."""
    for name in ("cmd", "commit"):
        yield Row(f"interactions.{name}.adapter", "'anthropic'", plain.asked, f"{{ {OPENAI} }}")
        yield Row(f"interactions.{name}.timeout", "1000", plain.late, f"{{ {OPENAI} }}")
    yield Row("interactions.inline.adapter", "'anthropic'", plain.asked, f"{{ {OPENAI} }}")
    yield Row("prompt_library.markdown.dirs", "{ '/usr' }", plain.prompts, "{}")
    yield Row("prompt_library.mine", PROMPT, plain.prompts, "{}")
    says = "callback = function(given) return given.word end"
    own = f"mine = {{ {says}, description = 'Says it', schema = {{ type = 'object' }} }}"
    shouts = "function(given) return given.word:upper() end"
    mine = f"{{ interactions = {{ chat = {{ tools = {{ {own} }} }} }} }}"
    yield Row(f"{TOOLS}.mine.callback", shouts, plain.own_tool, mine)
    yield Row(f"{TOOLS}.opts.save_with_autocmds", "false", plain.saved, "{}")
    python = f"{{ {OPENAI}, python = {{ host_prog = '/bin/sh' }} }}"
    yield Row("python.host_prog", "'/bin/cat'", plain.started, python)
    yield Row("host", "'python3'", plain.started, python)
    two = "{ adapters = { http = { opts = { order = { 'openai', 'anthropic' } } } } }"
    yield Row("adapters.http.opts.order", "{ 'anthropic', 'openai' }", plain.chosen, two)
