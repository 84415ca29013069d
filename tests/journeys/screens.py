"""Pictures of every state, from a real terminal: `make screens` writes shots/<size>-<background>/<name>.png and .txt.

The pictures are for viewing and are not checked: each reel drives the plugin through a few states and takes a picture
of each. A state that cannot be reached is reported at the end, with the actual screen.

`python -m tests.journeys.screens [--only WORD …] [--size 80x24 …] [--background dark …] [--out shots]`
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nvim"))

from real_chat import KEY
from tests.journeys import picture
from tests.journeys.chat import READY, command
from tests.journeys.desk import Desk
from tests.journeys.project import lay_out
from tests.journeys.terminal import WAIT_S, ScreenError, Terminal
from tests.providers.chat.answers import failure, reply, silence
from tests.providers.chat.thread import ChatServerThread
from tests.providers.completion.server import FillServerThread
from tests.providers.loopback.answers import Answer

PROSE = (
    "The stack forgets to **remove** what it returns: `pop` reads the last item and leaves it where it is.\n\n"
    "```python\ndef pop(self):\n    return self.items.pop()\n```\n\n"
    "Two things to keep in mind:\n\n"
    "1. `highest` stays as it is, because it says how high the stack *was*.\n"
    "2. An empty stack raises `IndexError`, as a list does, and callers already rely on it in three places.\n"
)


@dataclass
class Camera:
    """Takes the pictures of one reel at one size and background."""

    folder: Path
    size: tuple[int, int]
    dark: bool
    problems: list[str]

    def shoot(self, terminal: Terminal, name: str, wanted: str = "", limit_s: float = WAIT_S) -> None:
        """Wait for `wanted`, then write the picture; if it never appears, note that and take the picture anyway."""
        try:
            if wanted:
                terminal.wait(wanted, limit_s, prompt=True)
            terminal.still(5)
        except ScreenError as error:
            self.problems.append(f"{self.folder.name}/{name}: {error}")
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{name}.txt").write_text(terminal.screen() + "\n", encoding="utf-8")
        picture.draw(
            terminal.screen(colours=True), self.size, self.folder / f"{name}.png", dark=self.dark,
            cursor=terminal.cursor(),
        )  # fmt: skip


@dataclass
class Stage:
    """The desk and camera that a reel uses."""

    desk: Desk
    camera: Camera

    def offline(self, options: dict[str, Any] | None = None, *, before: str = "", **opts: Any) -> None:
        """Configure the offline adapter with these options."""
        adapters = {"adapters": {"http": {"offline": {"opts": opts}}}} if opts else {}
        self.desk.configure_offline({**adapters, **(options or {})}, before=self._background() + before)

    def online(self, url: str, options: dict[str, Any] | None = None, **more: Any) -> None:
        """Configure the loopback server."""
        self.desk.configure(url, options, before=self._background(), **more)

    def nvim(self, *args: str, env: dict[str, str] | None = None) -> Terminal:
        """Start Neovim with the camera's screen size."""
        return self.desk.nvim(*args, size=self.camera.size, env=env)

    def shoot(self, terminal: Terminal, name: str, wanted: str = "", limit_s: float = WAIT_S) -> None:
        """Take a picture."""
        self.camera.shoot(terminal, name, wanted, limit_s)

    def _background(self) -> str:
        return f"vim.o.background = '{'dark' if self.camera.dark else 'light'}'\n"


WAITING = "waiting for your approval"
WINDOWS = {"display": {"chat": {"window": {"layout": "vertical"}}}}


def say(terminal: Terminal, text: str) -> None:
    """Type a message and send it."""
    terminal.keys("<Esc>G")
    terminal.keys("i" + text.replace("<", "<lt>") + "<Esc>")
    terminal.still()
    terminal.keys("<CR>")


def first_contact(stage: Stage) -> None:
    """Show an empty chat beside a file, the help, a draft, the first answer and an unknown command."""
    stage.offline(WINDOWS)
    terminal = stage.nvim("src/stack.py")
    terminal.wait("class Stack")
    terminal.keys(":CodeCompanionChat<CR>")
    stage.shoot(terminal, "01-empty-chat", READY)
    terminal.keys("<Esc>g?")
    stage.shoot(terminal, "02-help")
    terminal.keys("q")
    terminal.keys("iWhat can you do?")
    stage.shoot(terminal, "03-draft")
    terminal.keys("<Esc><CR>")
    stage.shoot(terminal, "04-first-answer", "I am the offline adapter")
    say(terminal, "/compcat")
    stage.shoot(terminal, "05-unknown-command")
    terminal.keys("<Esc>ggdG<Esc>")
    stage.shoot(terminal, "06-edit-of-the-transcript")


def edits(stage: Stage) -> None:
    """Show tools, approvals of a command and an edit, the diff, an edit in an open file, a revert and a rejection."""
    stage.offline(WINDOWS)
    terminal = stage.nvim("src/stack.py")
    terminal.wait("class Stack")
    terminal.keys(":CodeCompanionChat<CR>")
    terminal.wait(READY)
    say(terminal, "read src/stack.py, notes.md and nothing.txt")
    stage.shoot(terminal, "10-tool-calls", "Finished|Done")
    say(terminal, "run `echo one && sleep 1 && seq 1 300; exit 3`")
    stage.shoot(terminal, "11-approval-of-a-command", WAITING)
    terminal.keys("<Esc>]a")
    stage.shoot(terminal, "11b-on-the-approval")
    terminal.keys("g2")
    terminal.wait("Finished|Done", gone="⋯ ")
    stage.shoot(terminal, "12-after-the-command")
    say(terminal, 'replace "return self.items[-1]" with "return self.items.pop()" in src/stack.py')
    stage.shoot(terminal, "13-approval-of-an-edit", WAITING)
    terminal.keys("<Esc>]aK")
    stage.shoot(terminal, "14-diff-of-an-edit")
    terminal.keys("q")
    terminal.still()
    terminal.keys("<Esc>]ag2")
    stage.shoot(terminal, "15-after-the-edit", r"✓ insert_edit")
    terminal.keys("?insert_edit src<CR><Tab>")
    stage.shoot(terminal, "15a-its-fold-open")
    command(terminal, "CodeCompanionRevert")
    stage.shoot(terminal, "15b-revert")
    terminal.keys("T")
    stage.shoot(terminal, "15c-reverted")
    terminal.keys("q")
    say(terminal, 'create hello.txt with "Hello"')
    terminal.wait(WAITING)
    terminal.keys("<Esc>]ag3")
    stage.shoot(terminal, "16-reason-of-a-rejection")
    terminal.keys("not now<CR>")
    stage.shoot(terminal, "17-after-a-rejection")
    long = "".join(f"line {number} of many\n" + "\n" * (number % 20 == 0) * 12 for number in range(1, 90))
    terminal.keys("<Esc>Gi")
    terminal.paste(f"create long.txt with\n```\n{long}```")
    terminal.keys("<Esc><CR>")
    stage.shoot(terminal, "18-long-approval", WAITING)
    terminal.keys("<Esc>]a")
    stage.shoot(terminal, "18b-on-the-long-approval")


def streaming(stage: Stage) -> None:
    """Show a slow reply, a message queued meanwhile, and a stop."""
    with ChatServerThread([reply(PROSE * 4, chunk_chars=20, delay_s=0.4)], key=KEY) as server:
        stage.online(server.url)
        terminal = stage.nvim()
        terminal.keys(":CodeCompanionChat<CR>")
        terminal.wait(READY)
        say(terminal, "Why does pop not remove the item?")
        terminal.wait("keep in mind")
        snapshot(stage, terminal, "20-streaming")
        terminal.keys("Giand the tests?<Esc><CR>")
        terminal.wait("and the tests")
        snapshot(stage, terminal, "21-queued")
        terminal.keys("<Esc>q")
        stage.shoot(terminal, "22-stopped")


def snapshot(stage: Stage, terminal: Terminal, name: str) -> None:
    """Take a picture of a screen that moves."""
    folder = stage.camera.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.txt").write_text(terminal.screen() + "\n", encoding="utf-8")
    picture.draw(
        terminal.screen(colours=True), stage.camera.size, folder / f"{name}.png", dark=stage.camera.dark,
        cursor=terminal.cursor(),
    )  # fmt: skip


def trouble(stage: Stage) -> None:
    """Show a wrong key, a rate limit with its wait, a broken stream, an unreachable server and a dead host."""
    script: list[Answer] = [
        failure(401, "Incorrect API key provided: sk-p****.", code="invalid_api_key"),
        failure(429, "Rate limit reached for requests", code="rate_limit_exceeded", headers={"retry-after": "8"}),
        silence(),
        reply(PROSE, break_after=30),
        silence(),
    ]
    with ChatServerThread(script, key=KEY) as server:
        stage.online(server.url, opts={"max_retries": 1})
        terminal = stage.nvim()
        terminal.keys(":CodeCompanionChat<CR>")
        terminal.wait(READY)
        say(terminal, "Hello")
        stage.shoot(terminal, "30-wrong-key", "✗")
        say(terminal, "Hello again")
        terminal.wait(r"[Rr]etry|again in|rate limit", 10)
        snapshot(stage, terminal, "31-retry")
        terminal.keys("<Esc>q")
        stage.shoot(terminal, "32-stopped-retry")
        server.script[:] = [reply(PROSE, break_after=30)]
        say(terminal, "Why?")
        stage.shoot(terminal, "33-cut-off", "incomplete|connection", 10)
        terminal.kill9("codecompanion.engine")
        stage.shoot(terminal, "34-host-killed", "host", 10)
    terminal.keys(":qa!<CR>")
    stage.online("http://127.0.0.1:9/v1", opts={"max_retries": 0})
    terminal = stage.nvim()
    terminal.keys(":CodeCompanionChat<CR>")
    terminal.wait(READY)
    say(terminal, "Anybody there?")
    stage.shoot(terminal, "35-no-network", "connect|reach|network", 20)


def mistakes(stage: Stage) -> None:
    """Show the startup messages of invalid setup() tables."""
    wrong = {"interactions": {"chat": {"adaptor": "offline", "opts": {"policy": "codebudy"}}}, "strategies": {}}
    stage.offline(wrong)
    terminal = stage.nvim("src/stack.py")
    stage.shoot(terminal, "40-setup-mistakes", "class Stack|ENTER")
    terminal.keys("<CR>:CodeCompanionChat<CR>")
    stage.shoot(terminal, "41-chat-after-mistakes", READY, 10)
    terminal.keys("<Esc>:checkhealth codecompanion<CR>")
    stage.shoot(terminal, "42-checkhealth", "codecompanion", 10)


def managed(stage: Stage) -> None:
    """Show a small window: cleared results, a running compaction, its card folded and open, inspector and reports."""
    opts = {"context_management": {"compaction": {"min_token_savings": 300}}}
    chat = {"adapter": "offline", "opts": opts}
    stage.offline({"interactions": {"chat": chat}}, context_window=16_000)
    terminal = stage.nvim()
    terminal.keys(":CodeCompanionChat<CR>")
    terminal.wait(READY)
    for name in "abcd":
        say(terminal, f"read ledger_{name}.txt")
        terminal.wait(rf"`read_file` ledger_{name}", 20)
        terminal.still()
    stage.shoot(terminal, "50-results-cleared", "✂", 10)
    terminal.keys("<Esc>gd")
    stage.shoot(terminal, "51-inspector", "see|request")
    terminal.keys("q")
    terminal.keys("gp")
    stage.shoot(terminal, "52-preview")
    terminal.keys("q")
    terminal.keys(":CodeCompanionCompact<CR>")
    stage.shoot(terminal, "53-compact-question")
    terminal.keys("1<CR>" if "1: Yes" in terminal.screen() else "y")
    terminal.wait("compacted|Summary · |Next Step|read the summary", 20)
    stage.shoot(terminal, "54-card")
    terminal.keys("gg/compacted\\|Summary · <CR>")
    stage.shoot(terminal, "55-card-under-the-cursor")
    terminal.keys("zR")
    stage.shoot(terminal, "56-card-open")
    terminal.keys("zMG")
    stage.shoot(terminal, "57-card-folded")
    terminal.keys(":CodeCompanionCost<CR>")
    stage.shoot(terminal, "58-cost", "[Cc]ost")
    terminal.keys("q")
    terminal.keys(":CodeCompanionTrace<CR>")
    stage.shoot(terminal, "59-trace", "[Tt]urn")
    terminal.keys("q")
    terminal.keys(":CodeCompanionUndo<CR>")
    stage.shoot(terminal, "60-undone", "[Uu]nd")
    terminal.keys(":CodeCompanionRecall berth N4<CR>")
    stage.shoot(terminal, "61-recall")


def compacting(stage: Stage) -> None:
    """Show a compaction whose model does not answer."""
    script = [reply("Read it."), reply("Read it again."), silence()]
    with ChatServerThread(script, key=KEY) as server:
        stage.online(server.url)
        terminal = stage.nvim()
        terminal.keys(":CodeCompanionChat<CR>")
        terminal.wait(READY)
        say(terminal, "one " * 60)
        terminal.wait("Read it")
        say(terminal, "two " * 60)
        terminal.wait("Read it again")
        terminal.keys(":CodeCompanionCompact!<CR>")
        terminal.wait("[Cc]ompacting", 10)
        snapshot(stage, terminal, "65-compacting")
        terminal.keys("Gia message meanwhile<Esc><CR>")
        terminal.wait("a message meanwhile")
        snapshot(stage, terminal, "66-queued-while-compacting")
        terminal.keys("q")
        stage.shoot(terminal, "67-compaction-stopped")


def pickers(stage: Stage) -> None:
    """Show every picker."""
    stage.offline(WINDOWS)
    terminal = stage.nvim("src/stack.py")
    terminal.keys(":CodeCompanionChat<CR>")
    terminal.wait(READY)
    say(terminal, "What can you do?")
    terminal.wait("offline adapter")
    for name, keys, wanted in (
        ("70-model", "<Esc>ga", "Choose a model"),
        ("71-resume", ":CodeCompanionChat Resume<CR>", "Resume a chat"),
        ("72-file", "Gi/file<Esc><CR>", "Attach files"),
        ("73-policy", "Gi/policy<Esc><CR>", "Policy"),
        ("74-rules", "Gi/rules<Esc><CR>", "Rules"),
        ("75-memory", "Gi/memory<Esc><CR>", "Memory"),
        ("76-pins", "Gi/pins<Esc><CR>", "pins"),
        ("77-checkpoints", ":CodeCompanionRestore<CR>", "checkpoint"),
    ):
        terminal.still()
        terminal.keys(keys)
        stage.shoot(terminal, name, wanted)
        terminal.keys("<Esc>")
    terminal.still()
    terminal.keys("<Esc>Gi/<C-x><C-o>")
    stage.shoot(terminal, "78-completion")
    terminal.keys("<C-e><Esc>")
    terminal.keys("ggdG:CodeCompanionChat<CR>")
    stage.shoot(terminal, "79-second-chat")


def layouts(stage: Stage) -> None:
    """Show a float, a split below, and a vertical split that contains a wide word."""
    for name, layout in (("80-float", "float"), ("81-horizontal", "horizontal"), ("82-vertical", "vertical")):
        stage.offline({"display": {"chat": {"window": {"layout": layout}}}})
        terminal = stage.nvim("src/stack.py")
        terminal.wait("class Stack")
        terminal.keys(":CodeCompanionChat<CR>")
        terminal.wait(READY)
        say(terminal, "read notes.md and src/stack.py")
        stage.shoot(terminal, name, "Done")
        terminal.keys(":qa!<CR>")


def gathered_code(stage: Stage) -> None:
    """Show code for a question: its line, its list, /context, exclusion, clearing, the trace and completion."""
    editing = {
        "interactions": {"chat": {"opts": {"context_management": {"editing": {"trigger": 2, "keep_cycles": 1}}}}}
    }
    with ChatServerThread(default=lambda received: reply(PROSE), key=KEY) as server:
        stage.online(server.url, editing)
        terminal = stage.nvim("src/stack.py")
        terminal.keys(":CodeCompanionChat<CR>")
        terminal.wait(READY)
        terminal.keys("<Esc>Gihow does #{<C-x><C-o>")
        stage.shoot(terminal, "83-codebase-completed", "codebase")
        terminal.keys("<Esc>S@src/<C-x><C-o>")
        stage.shoot(terminal, "83-file-completed", "stack")
        terminal.keys("<Esc>S<Esc>")
        say(terminal, "why does pop of the stack never get shorter? #{codebase}")
        stage.shoot(terminal, "84-gathered", "Two things")
        terminal.keys("<Esc>gg/snippets\\? from<CR>")
        stage.shoot(terminal, "84-gathered-line", "snippets? from")
        terminal.keys("K")
        stage.shoot(terminal, "85-gathered-list", "Sent to the model")
        terminal.keys("qzo")
        stage.shoot(terminal, "85-gathered-open", "stack.py:")
        terminal.keys("<Esc>")
        say(terminal, "/context how are berths booked at night, and who pops the stack?")
        stage.shoot(terminal, "86-context", "leave out|tokens")
        terminal.keys("x")
        stage.shoot(terminal, "86-context-left-out", "left (it )?out")
        terminal.keys("jp")
        stage.shoot(terminal, "86-context-pinned", "⚑")
        terminal.keys("q<Esc>Gdd")
        say(terminal, "are you sure?")
        terminal.wait("sure")
        terminal.still(20)
        terminal.keys("<Esc>gg/snippets\\? from<CR>")
        stage.shoot(terminal, "87-gathered-cleared", "cleared")
        terminal.keys(":CodeCompanionTrace 1<CR>")
        stage.shoot(terminal, "88-trace", "Gathered code")


def completion(stage: Stage) -> None:
    """Show ghost text: at a line's end, inside a line, several lines, one of two, a server that is down, the status."""
    keys = {"accept": "<C-l>", "accept_word": "<C-f>", "next": "<C-n>"}
    before = "_G.C = function() return require('codecompanion').completion_statusline() end\n"
    before += "vim.o.statusline = ' %f %m %= %{v:lua.C()} '\n"
    texts = ["peek(self):\n        return self.items[-1]\n\n    def clear(self):\n        self.items.clear()"]
    texts += ["self.items[index]", "self.items.pop(index)", "self.items.copy()", "item,\n            index=0,\n"]
    with FillServerThread(texts) as server:
        for url, name in ((server.address, "9"), ("http://127.0.0.1:9", "95-no-server")):
            options = {"enabled": True, "url": url, "debounce": 100, "keymaps": keys}
            stage.offline({"completion": options}, before=before)
            terminal = stage.nvim("src/stack.py")
            terminal.wait("class Stack")
            terminal.keys("Go<CR>    def ")
            if name != "9":
                terminal.wait("no suggestions")
                terminal.keys("<Esc>")
                stage.shoot(terminal, name, "no connection")
                terminal.keys(":CodeCompanion complete status<CR>")
                stage.shoot(terminal, "96-no-server-status")
                terminal.keys(":qa!<CR>")
                continue
            stage.shoot(terminal, "90-ghost-text", "peek")
            terminal.keys("<C-f><C-f>")
            stage.shoot(terminal, "91-two-words-taken")
            terminal.keys("<Esc>kkkkkkkkgg/return self.items<CR>")
            terminal.keys("c$return ")
            stage.shoot(terminal, "92-one-of-two", "index")
            terminal.keys("<C-n>")
            stage.shoot(terminal, "93-the-other", "pop")
            terminal.keys("<Esc>Go        self.push()<Esc>i")
            stage.shoot(terminal, "94-middle-of-a-line", "index=0")
            terminal.keys("<Esc>:qa!<CR>")


REELS: list[Callable[[Stage], None]] = [
    first_contact, edits, streaming, trouble, mistakes, managed, compacting, pickers, layouts, gathered_code,
    completion,
]  # fmt: skip


@contextmanager
def _stage(camera: Camera) -> Iterator[Stage]:
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="screens-", ignore_cleanup_errors=True)))
        desk = Desk(root, stack)
        lay_out(desk)
        yield Stage(desk, camera)


def _run(reel: str, size: tuple[int, int], background: str, out: Path) -> list[str]:
    """Run one reel; return its errors."""
    folder = out / f"{size[0]}x{size[1]}-{background}"
    camera = Camera(folder, size, background == "dark", [])
    try:
        with _stage(camera) as stage:
            next(play for play in REELS if play.__name__ == reel)(stage)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(last) if frame.filename == __file__), 0)
        camera.problems.append(f"{folder.name}: {reel} stopped at line {line}: {error}")
    return camera.problems


def main() -> int:
    """Take the pictures asked for; return 1 when a state was not reached."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], help="reels whose name contains one of these")
    parser.add_argument("--size", nargs="*", default=["80x24", "120x40"])
    parser.add_argument("--background", nargs="*", default=["dark", "light"])
    parser.add_argument("--out", type=Path, default=Path("shots"))
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    names = [reel.__name__ for reel in REELS]
    names = [name for name in names if not options.only or any(word in name for word in options.only)]
    sizes = [tuple(int(part) for part in size.split("x")) for size in options.size]
    jobs = [(name, size, ground) for size in sizes for ground in options.background for name in names]
    problems: list[str] = []
    with ProcessPoolExecutor(options.workers) as pool:
        for found in [pool.submit(_run, *job, options.out) for job in jobs]:
            problems.extend(found.result())
    for problem in problems:
        print(problem, end="\n\n")
    print(f"{len(list(options.out.rglob('*.png')))} pictures in {options.out}/, {len(problems)} states not reached")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
