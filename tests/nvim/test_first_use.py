"""The first chat on a machine: Python packages are installed with visible progress, and no typed text is lost."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_uv import calls, fake_uv
from harness import Nvim, wait_until_gone

Start = Callable[..., Nvim]
NO_NETWORK = "error: Failed to fetch: `https://pypi.org/simple/anyio/`\n  Caused by: dns error"


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Return the path of the file that the fake uv waits for."""
    return tmp_path / "gate"


@pytest.fixture
def start(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> Start:
    """Return a function that starts a Neovim with a fake uv and the chat in the whole window."""

    def start(*, env: dict[str, str] | None = None, init: str = "", **options: Any) -> Nvim:
        layout = "require('codecompanion').setup({ display = { chat = { window = { layout = 'buffer' } } } })\n"
        size = options.pop("size", (80, 24))
        return nvim_factory(env=env or fake_uv(tmp_path, **options), init=layout + init, size=size)

    return start


def send(nvim: Nvim, text: str) -> None:
    """Type a message into the chat and send it."""
    nvim.feed("Gi" + text + "<Esc><CR>")


def draft(nvim: Nvim) -> str:
    """Return the text in the input."""
    return str(
        nvim.lua(
            "local c = require('codecompanion.chat').current()"
            " return require('codecompanion.chat.buffer.chat_text').input_text(c)"
        )
    )


def answers(nvim: Nvim) -> int:
    """Return the number of replies in the buffer."""
    return sum(line.startswith("## CodeCompanion") for line in nvim.lines())


def installs(root: Path) -> int:
    """Return how many environment installations were started."""
    return sum(" venv " in call for call in calls(root))


def test_the_chat_shows_the_progress_of_the_installation(start: Start, gate: Path) -> None:
    """The step and its duration, once, in the bar; at the cursor the consequence. Both disappear when done."""
    nvim = start(gate=gate)
    nvim.command("CodeCompanionChat")
    nvim.wait_screen(r"Installing packages: downloading 37 · \d+ s")
    nvim.wait_screen(r"downloading 37 · ([2-9]|\d\d+) s")
    screen = nvim.screen()
    assert screen.count("Installing") == screen.count("downloading") == 1
    queued = "⋯ Messages you send now are queued until the Python packages are installed, usually in less than a minute"
    assert queued in " ".join(screen.split())
    assert "to stop" not in screen, "there is nothing of the chat's to stop"
    assert "Installing" in nvim.lua("return require('codecompanion').statusline()")
    assert nvim.messages() == "", "the bar shows it, so the command line does not"
    gate.touch()
    nvim.wait_screen(r"~\d+ %")
    assert "Installing" not in nvim.screen()
    assert nvim.messages() == ""


@pytest.mark.parametrize(("columns", "bar"), [(80, "Updating packages: downloading"), (40, "Updating: downloading")])
def test_an_update_names_its_reason_and_subject(start: Start, gate: Path, columns: int, bar: str) -> None:
    """A newcomer sees that the plugin's packages are updated, and that typing is possible."""
    nvim = start(gate=gate, size=(columns, 24))
    nvim.command("CodeCompanionChat")
    nvim.wait_screen("Installing")
    nvim.lua("require('codecompanion.install').progress.again = true")
    nvim.wait_screen(bar)
    said = (
        "⋯ This version of the plugin needs different Python packages. Messages you send now are queued until they are"
        " installed, usually in less than a minute."
    )
    assert said in " ".join(nvim.screen().split())
    gate.touch()


@pytest.mark.parametrize(
    ("columns", "bar"), [(80, "Installing packages for MCP: downloading 37 · "), (40, "Installing for MCP · ")]
)
def test_packages_for_mcp_are_named_and_a_question_waits(start: Start, gate: Path, columns: int, bar: str) -> None:
    """The question that came with the command waits too, though it was drawn before the installation began."""
    gate.touch()
    first = start(gate=gate)
    first.command("CodeCompanionChat")
    first.wait_screen(r"~\d+ %")
    first.leave()
    gate.unlink()
    mcp = "require('codecompanion').setup({ mcp = { servers = { clock = { cmd = { 'true' } } } } })\n"
    nvim = start(gate=gate, init=mcp, size=(columns, 24))
    nvim.command("CodeCompanionChat")
    nvim.wait_screen(r"Your MCP servers need more\s+Python\s+packages\.\s+Messages you send\s+now\s+are\s+queued")
    nvim.command("CodeCompanionChat what time is it?")
    nvim.wait_screen(rf"{bar}\d+ s")
    nvim.wait_for(lambda: "⋯" not in nvim.screen(), "the progress in the bar only")
    screen = nvim.wait_screen("sent when ready")
    assert "sending" not in screen
    assert "· CodeCompanion" not in screen, "it would read as part of the progress"
    gate.touch()
    nvim.wait_for(lambda: answers(nvim) == 1, "the answer")


def test_a_message_sent_during_the_installation_waits_and_is_sent_once(start: Start, gate: Path) -> None:
    """Text typed after the message stays too."""
    nvim = start(gate=gate)
    nvim.command("CodeCompanionChat")
    nvim.wait_screen("Installing packages: ")
    send(nvim, "hello there")
    nvim.wait_screen(r"sent when ready")
    assert "sending" not in nvim.screen()
    nvim.feed("Ginext thought<Esc>")
    gate.touch()
    nvim.wait_for(lambda: answers(nvim) == 1 and "idle" in str(nvim.lua("return vim.b.codecompanion_chat.state")))
    assert sum(line == "hello there" for line in nvim.lines()) == 1
    assert draft(nvim) == "next thought"
    assert "sent when ready" not in nvim.screen()


def test_a_failed_installation_is_one_sentence_and_the_message_returns(start: Start, tmp_path: Path) -> None:
    """The sentence gives the cause, says that the message is kept, and names the remedy; sending again retries."""
    gate = tmp_path / "gate"
    nvim = start(gate=gate, fails=NO_NETWORK)
    nvim.command("CodeCompanionChat")
    nvim.wait_screen("Installing packages: ")
    send(nvim, "hello there")
    nvim.wait_screen("sent when ready")
    gate.touch()
    nvim.wait_for(lambda: draft(nvim) == "hello there", "the message back in the input")
    nvim.settle()
    text = " ".join(" ".join(nvim.lines()).split())
    assert text.count("No network connection: the Python packages were not installed.") == 1
    assert "Your message is back in the input." in text
    assert ":CodeCompanion log install" in text
    assert "Installing" not in nvim.screen()
    assert nvim.messages() == ""
    assert not nvim.blocked()
    nvim.lua("vim.env.FAKE_UV_FAILS = ''")
    nvim.feed("<CR>")
    nvim.wait_for(lambda: answers(nvim) == 1, "the answer")
    assert installs(tmp_path) == 2


def test_leaving_during_the_installation_ends_it_and_keeps_the_message(
    start: Start, gate: Path, tmp_path: Path
) -> None:
    """After `:qa` during the download, no orphan process continues, and the next chat has the text in its input."""
    nvim = start(gate=gate)
    nvim.command("CodeCompanionChat")
    nvim.wait_screen("downloading 37")
    send(nvim, "a long question")
    nvim.wait_screen("sent when ready")
    nvim.feed("Giand a second thought<Esc>")
    [installing] = [int(call.split()[0]) for call in calls(tmp_path) if "pip install" in call]
    nvim.__exit__()
    assert not (tmp_path / "data/nvim/codecompanion/installing").exists()
    wait_until_gone(installing)
    gate.touch()
    nvim = start()
    nvim.command("CodeCompanionChat")
    assert draft(nvim) == "a long question\nand a second thought"
    nvim.wait_screen(r"~\d+ %")
    assert draft(nvim) == "a long question\nand a second thought"
    nvim.command("CodeCompanionChat New")
    assert draft(nvim) == "", "it is given back once"


def test_a_chat_with_a_deleted_buffer_keeps_its_text_too(start: Start, gate: Path) -> None:
    """This covers `:bd`, then `:qa`, during the download."""
    nvim = start(gate=gate)
    nvim.command("CodeCompanionChat")
    nvim.wait_screen("downloading 37")
    send(nvim, "a long question")
    nvim.wait_screen("sent when ready")
    nvim.feed("Giand a second thought<Esc>")
    nvim.command("enew | bdelete #")
    nvim.__exit__()
    gate.touch()
    nvim = start()
    nvim.command("CodeCompanionChat")
    assert draft(nvim) == "a long question\nand a second thought"


def test_without_a_chat_the_command_line_shows_the_progress(start: Start, gate: Path) -> None:
    """`:CodeCompanionChat Resume` requests the list before there is a chat."""
    nvim = start(gate=gate, fails=NO_NETWORK)
    nvim.command("CodeCompanionChat Resume")
    nvim.wait_screen("codecompanion: Installing Python packages: downloading 37")
    gate.touch()
    nvim.wait_for(lambda: "No network connection" in nvim.messages(), "the sentence")
    nvim.settle()
    assert nvim.messages().count("No network connection") == 1
    assert not nvim.blocked()


@pytest.mark.parametrize("command", ["CodeCompanion install", "CodeCompanionChat Resume"])
def test_a_chat_that_shows_the_progress_clears_it_from_the_command_line(start: Start, gate: Path, command: str) -> None:
    nvim = start(gate=gate)
    nvim.command(command)
    nvim.wait_screen("codecompanion: Installing Python packages: downloading 37")
    nvim.command("CodeCompanionChat")
    nvim.wait_screen("Installing packages: downloading 37")
    nvim.wait_for(lambda: nvim.screen().count("downloading 37") == 1, "one place")


def test_a_list_waiting_for_the_packages_does_not_hide_the_progress(start: Start, gate: Path) -> None:
    """The list's own loading line used to appear 0.3 s later and hide the last step until the end."""
    nvim = start(gate=gate)
    nvim.command("CodeCompanion install")
    nvim.wait_screen("codecompanion: Installing Python packages: downloading 37")
    nvim.command("CodeCompanionChat Resume")
    nvim.lua("vim.wait(600)")
    nvim.wait_screen("codecompanion: Installing Python packages: downloading 37")
    gate.touch()
    nvim.wait_for(lambda: "the Python environment is ready" in nvim.messages(), "the end")


def test_two_neovims_create_one_environment(start: Start, gate: Path, tmp_path: Path) -> None:
    """Both start on first use; the second shows that the first is installing, and then uses the same environment."""
    first, second = start(gate=gate), start(gate=gate)
    for nvim in (first, second):
        nvim.command("CodeCompanionChat")
        nvim.wait_screen("downloading 37")
        send(nvim, "hello there")
        nvim.wait_screen("sent when ready")
    second.wait_screen(r"Another Neovim is installing packages: downloading 37 · \d+ s")
    gate.touch()
    for nvim in (first, second):
        nvim.wait_for(lambda nvim=nvim: answers(nvim) == 1, "the answer")  # type: ignore[misc]
    assert installs(tmp_path) == 1


def test_a_neovim_killed_during_the_installation_leaves_it_to_the_other(
    start: Start, gate: Path, tmp_path: Path
) -> None:
    """After `kill -9`, the claim of the dead process is ignored and its partial folder is removed."""
    first, second = start(gate=gate), start(gate=gate)
    for nvim in (first, second):
        nvim.command("CodeCompanionChat")
        nvim.wait_screen("downloading 37")
    send(second, "hello there")
    first.kill9()
    second.wait_screen(r" Installing packages: \w+")
    gate.touch()
    second.wait_for(lambda: answers(second) == 1, "the answer")
    assert installs(tmp_path) == 2
    folders = list((tmp_path / "data/nvim/codecompanion/venv").iterdir())
    assert len(folders) == 1


def test_the_health_check_reports_native_windows(start: Start, gate: Path) -> None:
    nvim = start(gate=gate, size=(120, 60))
    nvim.lua("local has = vim.fn.has; vim.fn.has = function(name) return name == 'win32' and 1 or has(name) end")
    nvim.command("checkhealth codecompanion")
    assert "Native Windows is not supported" in "\n".join(nvim.lines())


def test_the_health_check_is_correct_at_every_stage(start: Start, gate: Path, tmp_path: Path) -> None:
    """The stages are missing, in progress, installed, and installed for an older version."""

    def report(nvim: Nvim) -> str:
        nvim.command("checkhealth codecompanion")
        text = " ".join(" ".join(nvim.lines()).split())
        nvim.command("bwipeout!")
        return text

    nvim = start(gate=gate, size=(120, 60))
    assert "The Python packages are not installed yet" in report(nvim)
    assert "The first chat installs them with uv" in report(nvim)
    assert installs(tmp_path) == 0, "looking installs nothing"
    nvim.command("CodeCompanionChat")
    nvim.wait_screen("downloading 37")
    nvim.command("split")
    installing = report(nvim)
    assert "Installing Python packages: downloading 37" in installing
    assert "Not running yet: it starts when the packages are installed" in installing
    gate.touch()
    nvim.wait_screen(r"~\d+ %")
    ready = report(nvim)
    assert "created with uv: " in ready
    assert " pynvim: " in ready
    assert " python: " not in ready, "its path and version are in the line of the environment"
    assert "ripgrep" not in ready, "the programs are listed below"
    stamp = next((tmp_path / "data/nvim/codecompanion/venv").glob("*/codecompanion-stamp.json"))
    stamp.write_text(stamp.read_text().replace('"lock":"', '"lock":"0').replace('"lock": "', '"lock": "0'))
    assert "was created for an older version of the plugin" in report(nvim)


def test_without_python_the_chat_names_the_packages_to_install(start: Start, tmp_path: Path) -> None:
    """This applies if neither uv nor Python is found."""
    programs = tmp_path / "few"
    programs.mkdir()
    for name in ("sh", "mkdir", "rm"):
        (programs / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    nvim = start(env={"PATH": str(programs)})
    nvim.command("CodeCompanionChat")
    nvim.wait_for(lambda: "No Python 3.11 or newer was found" in " ".join(nvim.lines()))
    text = " ".join(nvim.lines())
    assert text.count("No Python 3.11") == 1
    assert "sudo apt install python3 python3-venv" in text
    assert not nvim.blocked()


def test_an_unwritable_data_folder_is_reported_in_the_chat(start: Start, tmp_path: Path) -> None:
    """A file in place of the folder makes this test work for root too."""
    (tmp_path / "data/nvim").mkdir(parents=True)
    (tmp_path / "data/nvim/codecompanion").write_text("")
    nvim = start()
    nvim.command("CodeCompanionChat")
    nvim.wait_for(lambda: "Install failed: cannot write to" in " ".join(nvim.lines()))
    assert " ".join(nvim.lines()).count("Install failed: cannot write to") == 1
    assert nvim.messages() == ""
    assert not nvim.blocked()


def test_an_outdated_environment_is_used_if_it_cannot_be_updated(start: Start, tmp_path: Path) -> None:
    """After an update without a network, the chat works, and one message says that the previous environment is used."""
    first = start()
    first.command("CodeCompanionChat")
    first.wait_screen(r"~\d+ %")
    stamp = next((tmp_path / "data/nvim/codecompanion/venv").glob("*/codecompanion-stamp.json"))
    first.__exit__()
    text = stamp.read_text()
    stamp.write_text(text.replace('"lock":"', '"lock":"0').replace('"lock": "', '"lock": "0'))
    nvim = start(fails=NO_NETWORK, size=(160, 30))
    nvim.command("CodeCompanionChat")
    nvim.wait_screen(r"~\d+ %")
    send(nvim, "hello there")
    nvim.wait_for(lambda: answers(nvim) == 1, "the answer")
    assert nvim.messages().count("The previous environment is used") == 1
    assert not nvim.blocked()


def test_a_damaged_environment_is_recreated(start: Start, tmp_path: Path) -> None:
    """If packages were deleted, the chat reinstalls them automatically and answers the message sent in the meantime."""
    first = start()
    first.command("CodeCompanionChat")
    first.wait_screen(r"~\d+ %")
    first.__exit__()
    [python] = (tmp_path / "data/nvim/codecompanion/venv").glob("*/bin/python")
    python.write_text("#!/bin/sh\necho 'codecompanion: openai is missing' >&2; exit 2\n")
    nvim = start()
    nvim.command("CodeCompanionChat")
    send(nvim, "hello there")
    nvim.wait_for(lambda: answers(nvim) == 1, "the answer")
    assert installs(tmp_path) == 2
    assert not python.exists(), "the damaged one is removed"
    assert nvim.messages() == ""


def test_a_provider_without_the_packages_is_not_used(start: Start, tmp_path: Path) -> None:
    """`g:python3_host_prog` is often a Python with only pynvim."""
    bare = tmp_path / "bare"
    bare.write_text("#!/bin/sh\necho 'codecompanion: this Python lacks openai' >&2; exit 2\n")
    bare.chmod(0o755)
    nvim = start(init=f"vim.g.python3_host_prog = '{bare}'")
    nvim.command("CodeCompanionChat")
    nvim.wait_screen(r"~\d+ %")
    assert installs(tmp_path) == 1


def test_a_provider_with_the_packages_is_used(start: Start, tmp_path: Path) -> None:
    """In this case nothing is installed."""
    nvim = start(init=f"vim.g.python3_host_prog = '{sys.executable}'")
    nvim.command("CodeCompanionChat")
    nvim.wait_screen(r"~\d+ %")
    assert installs(tmp_path) == 0


def test_narrow_windows_show_the_important_half(start: Start, gate: Path) -> None:
    """This applies at 40 columns, with the user's own status line setting."""
    nvim = start(gate=gate, size=(40, 24), init="vim.o.laststatus = 0\n")
    nvim.command("CodeCompanionChat")
    nvim.wait_screen(r"downloading 37 · \d+ s")
    nvim.wait_screen(r"⋯ Messages you send now are queued until\s+the Python packages are installed,")
    send(nvim, "hello there")
    nvim.wait_for(lambda: "Messages you send now" not in nvim.screen(), "the end of the sentence")
    nvim.wait_screen(r" Installing: downloading 37 · \d+ s")


def test_a_chat_without_a_bar_shows_the_progress_in_its_buffer(start: Start, gate: Path) -> None:
    nvim = start(gate=gate, init="vim.o.winbar = 'mine'\nvim.o.laststatus = 0\n")
    nvim.command("CodeCompanionChat")
    nvim.wait_screen(r"⋯ Installing Python packages\s+downloading 37 · \d+ s\s+Messages you send now are queued\.")
    send(nvim, "hello there")
    nvim.wait_screen(r"⋯ Installing Python packages: downloading 37 · \d+ s")
    assert nvim.screen().count("downloading") == 1
