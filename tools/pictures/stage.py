"""A real Neovim with an attached grid, recorded as a single picture or as a film.

The screen is what the user sees: everything on it is drawn by the plugin, except for the line below a film that names
the pressed key. The home folder is clean and has the same name each time; the project is our own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "nvim"))

from harness import NO_PROVIDER, Nvim, lua_string
from real_chat import COUNT_TURNS, KEY, RealChat
from tests.forked_python import forked_python
from tests.providers.chat.thread import ChatServerThread
from tests.providers.loopback.answers import Answer
from tools.pictures.drawing import Colour, Look, Pen, cell_size, image_of

POINTS, MARGIN = 24, 28
CAPTION: Colour = (155, 166, 178)
KEYCAP: Colour = (252, 224, 148)
CALM = """
vim.o.termguicolors, vim.o.background = true, "dark"
vim.o.shortmess = vim.o.shortmess .. "I"
vim.o.ruler, vim.o.showcmd, vim.o.wrap, vim.o.showtabline = false, false, false, 0
vim.o.splitright = true
vim.opt.fillchars = { eob = " " }
"""
"""Neovim's defaults, without elements that would be distracting in a picture."""
COLOURS = 128
"""Number of colours of a picture: more than a colour scheme has, and half the file size of full colour."""


@dataclass
class Film:
    """Frames with the display time of each, in milliseconds."""

    frames: list[Any] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write an animated GIF that starts over after its last frame."""
        from PIL import Image

        width, height = self.frames[0].size
        strip = Image.new("RGB", (width, height * len(self.frames)))
        for number, frame in enumerate(self.frames):
            strip.paste(frame, (0, number * height))
        palette = strip.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE)
        shown = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in self.frames]
        shown[0].save(
            path, save_all=True, append_images=shown[1:], duration=self.times, loop=0, optimize=True, disposal=1
        )


class Stage:
    """A Neovim with its chat and the camera."""

    def __init__(self, nvim: Nvim, root: Path) -> None:
        self.nvim, self.root = nvim, root
        self.chat = RealChat(nvim, root)
        self.film = Film()

    def open(self, command: str = "CodeCompanionChat") -> None:
        """Open a chat and wait for its host."""
        self.nvim.command(command)
        self.chat.wait_ready()

    def keys(self, keys: str) -> None:
        """Press keys."""
        self.nvim.feed(keys)

    def picture(self) -> Any:
        """Return the screen as an image, once it has settled."""
        self.nvim.settle()
        self.nvim.screen()
        return self._image()

    def save(self, path: Path) -> None:
        """Write the screen as a PNG."""
        from PIL import Image

        shown = self.picture().quantize(COLOURS, dither=Image.Dither.NONE)
        shown.save(path, optimize=True)

    def frame(self, ms: int, said: str = "", key: str = "") -> None:
        """Add the screen to the film; a line below it shows the pressed key and its effect."""
        self.film.frames.append(self._captioned(self.picture(), key, said))
        self.film.times.append(ms)

    def put_cursor(self, text: str) -> None:
        """Put the cursor on the last line of the buffer that contains the text."""
        rows = [row for row, line in enumerate(self.nvim.lines(), 1) if text in line]
        self.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", rows[-1])

    def type(self, text: str, said: str = "", *, pieces: int = 6) -> None:
        """Type into the input of the chat, filmed in `pieces` steps."""
        self.keys("Gi")
        each = max(1, -(-len(text) // pieces))
        for at in range(0, len(text), each):
            self.keys(text[at : at + each].replace("<", "<lt>"))
            self.frame(130, said)
        self.keys("<Esc>")

    def _image(self) -> Any:
        grid = self.nvim.grid
        ink, paper = grid.default_colours
        look = Look(POINTS, ink, paper, MARGIN)
        lines = [[(text, _pen(grid.highlights.get(number, {}))) for text, number in row] for row in grid.cells]
        shape: Any = "bar" if grid.mode in ("insert", "cmdline_normal") else "block"
        return image_of(lines, grid.columns, look, cursor=grid.cursor, shape=shape)

    def _captioned(self, image: Any, key: str, said: str) -> Any:
        from PIL import Image, ImageDraw, ImageFont

        height = cell_size(POINTS)[1] + MARGIN
        paper = image.getpixel((0, 0))
        whole = Image.new("RGB", (image.width, image.height + height), paper)
        whole.paste(image, (0, 0))
        canvas = ImageDraw.Draw(whole)
        font = ImageFont.truetype("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", POINTS)
        bold = ImageFont.truetype("/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf", POINTS)
        y = image.height - 6
        canvas.line([MARGIN, y - 10, image.width - MARGIN, y - 10], fill=_between(paper, CAPTION), width=2)
        x = float(MARGIN)
        if key:
            wide = bold.getlength(key)
            canvas.rounded_rectangle([x, y + 2, x + wide + 24, y + POINTS + 14], 8, outline=KEYCAP, width=2)
            canvas.text((x + 12, y + 4), key, font=bold, fill=KEYCAP)
            x += wide + 42
        canvas.text((x, y + 4), said, font=font, fill=CAPTION)
        return whole


def _between(one: Colour, other: Colour) -> Colour:
    red, green, blue = ((3 * a + b) // 4 for a, b in zip(one, other, strict=True))
    return red, green, blue


def _pen(attributes: Mapping[str, Any]) -> Pen:
    return Pen(
        ink=_colour(attributes.get("foreground")),
        paper=_colour(attributes.get("background")),
        bold=bool(attributes.get("bold")),
        italic=bool(attributes.get("italic")),
        underline=bool(attributes.get("underline") or attributes.get("undercurl")),
        struck=bool(attributes.get("strikethrough")),
        reverse=bool(attributes.get("reverse")),
    )


def _colour(number: int | None) -> Colour | None:
    return None if number is None else (number >> 16 & 255, number >> 8 & 255, number & 255)


@contextmanager
def stage(
    root: Path,
    files: Mapping[str, str],
    *,
    size: tuple[int, int] = (96, 28),
    script: Sequence[Answer] = (),
    options: Mapping[str, Any] | None = None,
    window: int = 128_000,
    before: str = "",
    env: Mapping[str, str] | None = None,
    scripted: bool = True,
) -> Iterator[Stage]:
    """Start Neovim in a project with these files.

    A local server plays the model from a script: its answers are fixed, and the tools it calls run normally. `window`
    is the size of its context window; `before` is Lua that runs before setup(). With `scripted` false nothing is
    configured, as for a new user.
    """
    for name, text in files.items():
        (root / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "work" / name).write_text(text, encoding="utf-8")
    with ChatServerThread(list(script), key=KEY, models=("scripted",)) as server:
        entry = {
            "extends": "openai_compatible",
            "formatted_name": "demo",
            "env": {"url": server.url.removesuffix("/v1"), "api_key": "LOOP_KEY"},
            "schema": {"model": {"default": "scripted"}},
            "opts": {"context_window": window},
        }
        config: dict[str, Any] = {
            "python": {"host_prog": forked_python()},
            "adapters": {"http": {"demo": entry}},
            "interactions": {"chat": {"adapter": "demo"}},
            "display": {"chat": {"window": {"layout": "buffer"}}},
        }
        if not scripted:
            del config["adapters"], config["interactions"]
        decoded = [f"vim.json.decode({lua_string(json.dumps(one))})" for one in (config, dict(options or {}))]
        merged = f"vim.tbl_deep_extend('force', {', '.join(decoded)})"
        init = f"{CALM}{NO_PROVIDER}{before}require('codecompanion').setup({merged})\n{COUNT_TURNS}"
        with Nvim(root, init=init, size=size, env={"LOOP_KEY": KEY, **(env or {})}) as nvim:
            yield Stage(nvim, root)
