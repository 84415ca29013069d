"""Commands that try to leave the sandbox, for every kind of sandbox that this machine supports.

`escape_tries.py` contains the attempts; this module builds their target: a home folder with keys, an editor with a
secret in its environment, sockets and a repository. The same attempts run without a sandbox, where they must succeed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codecompanion.settings_sections import SandboxSettings
from codecompanion.tools.process import Ended, run_program
from codecompanion.tools.sandbox import sandbox as sandbox_module
from codecompanion.tools.sandbox.confined import Confined, Kind, Pipes
from codecompanion.tools.sandbox.sandbox import LINUX_KINDS, Sandbox
from tests.attacks.conftest import Tally
from tests.attacks.sizes import amount
from tests.outside_tmp import folder_outside_tmp

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandboxes tried here are of Linux")

TRIES = Path(__file__).with_name("escape_tries.py")
CANARY = "canary-c7b1f0d2"
_ENOUGH = b"end of the echo"
SETTINGS = SandboxSettings(mode="required", write=(), read=(), network=False)
KEYS = (
    ".ssh/id_ed25519", ".aws/credentials", ".gnupg/secring.gpg", ".netrc", ".npmrc", ".pypirc", ".git-credentials",
    ".config/gh/hosts.yml", ".docker/config.json", ".kube/config", ".password-store/a.gpg", ".cargo/credentials.toml",
    ".mozilla/firefox/x/logins.json", ".config/google-chrome/Default/Cookies", ".local/state/nvim/shada/main.shada",
    ".local/state/nvim/undo/file", ".bash_history", ".env", ".local/share/opencode/auth.json",
    ".config/stripe/config.toml", ".config/pypoetry/auth.toml", ".local/share/atuin/history.db", ".irb_history",
    ".cursor/mcp.json", ".config/Code/User/x", ".local/share/keyrings/login.keyring", ".config/gcloud/creds.db",
)  # fmt: skip


class World:
    """The folders that a command attacks, with canaries in them."""

    def __init__(self, folder: Path, closing: contextlib.ExitStack) -> None:
        self.folder, self.closing = folder, closing
        self._sandboxes: dict[Kind, Sandbox] = {}
        self.workspace, self.home, self.outside = folder / "workspace", folder / "home", folder / "outside"
        self.data, self.private, self.runtime = folder / "data", folder / "private", folder / "runtime"
        for one in (self.workspace, self.home, self.outside, self.data, self.private, self.runtime):
            one.mkdir()
        self._plant_files()
        self.facts: dict[str, Any] = {
            "canary": CANARY, "outside": str(self.outside), "home": str(self.home), "data": str(self.data),
            "runtime": str(self.runtime), "host": os.getpid(), "abstract": f"cc-attack-{os.getpid()}-{folder.name}",
            "socket": str(self.home / "service.sock"), "shm_key": 0x20200000 + os.getpid() % 60_000,
            "setuid": str(self.outside / "setuid"),
        }  # fmt: skip
        self._plant_sockets()
        self._plant_editor()

    def _plant_files(self) -> None:
        for name in KEYS:
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(CANARY)
        (self.home / ".ssh/program").write_text("#!/bin/sh\necho ran\n")
        (self.home / ".ssh/program").chmod(0o755)
        for name in (".local/bin", ".config/nvim", ".cache"):
            (self.home / name).mkdir(parents=True, exist_ok=True)
        (self.home / ".cache/program").write_text("")
        (self.data / "sessions.db").write_text(CANARY)
        (self.runtime / "secret").write_text(CANARY)
        for name in ("file", "to-truncate", "to-unlink", "to-rename", "to-move"):
            (self.outside / name).write_text("whole\n")
        (self.outside / "to-remove").mkdir()
        (self.workspace / "link-to-key").symlink_to(self.home / ".ssh/id_ed25519")
        subprocess.run(["git", "init", "-q", str(self.workspace)], check=True)
        (self.workspace / ".git/hooks").mkdir(exist_ok=True)
        if os.getuid() == 0:
            source = self.outside / "setuid.c"
            shutil.copy(shutil.which("id") or "/usr/bin/id", self.outside / "id")
            (self.outside / "id").chmod(0o755)
            source.write_text(
                f'#include <unistd.h>\nint main(){{execl("{self.outside}/id","id","-u",(char*)0);return 1;}}'
            )
            if (
                shutil.which("cc")
                and subprocess.run(["cc", str(source), "-o", str(self.outside / "setuid")]).returncode == 0
            ):
                os.chown(self.outside / "setuid", 65534, 65534)
                (self.outside / "setuid").chmod(0o6755)
            self.folder.chmod(0o755)

    def _plant_sockets(self) -> None:
        def listen(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> socket.socket:
            one = self.closing.enter_context(socket.socket(family, kind))
            one.bind(address)
            if kind == socket.SOCK_STREAM:
                one.listen()
            else:
                thread = threading.Thread(target=_echo, args=(one,), daemon=True)
                thread.start()
                self.closing.callback(_end_echo, one, thread)
            return one

        self.facts["tcp"] = listen(socket.AF_INET, ("0.0.0.0", 0)).getsockname()[1]  # noqa: S104 the canary's own
        self.facts["udp"] = listen(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM).getsockname()[1]
        self.facts["tcp6"] = 0
        with contextlib.suppress(OSError):
            one = self.closing.enter_context(socket.socket(socket.AF_INET6))
            one.bind(("::", 0))
            one.listen()
            self.facts["tcp6"] = one.getsockname()[1]
        listen(socket.AF_UNIX, "\0" + self.facts["abstract"])
        short = Path(tempfile.mkdtemp(prefix="cc-"))  # the names of sockets are visible
        self.closing.callback(shutil.rmtree, short)
        for name, folder, file in (("h", self.home, "service.sock"), ("r", self.runtime, "bus")):
            (short / name).symlink_to(folder)
            listen(socket.AF_UNIX, str(short / name / file))

    def _plant_editor(self) -> None:
        nvim = shutil.which("nvim") or str(Path(sys.prefix) / "bin/nvim")
        self.facts["nvim"] = nvim if Path(nvim).exists() else ""
        self.facts["nvim_socket"] = str(self.runtime / "nvim.sock")
        environment = {**os.environ, "CC_CANARY": CANARY, "HOME": str(self.folder)}
        argv = [nvim, "--clean", "--headless", "--listen", self.facts["nvim_socket"], "+let g:c='" + CANARY + "'"]
        if not self.facts["nvim"]:
            argv = [sys.executable, "-c", "import time; time.sleep(600)", CANARY]
        editor = subprocess.Popen(
            argv, cwd=self.outside, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.closing.callback(_end, editor)
        self.facts["editor"] = editor.pid
        wait_for(lambda: not self.facts["nvim"] or Path(self.facts["nvim_socket"]).exists())

        in_tmp = Path(tempfile.mkdtemp(prefix="cc-attack-")) / "file"
        in_tmp.write_text("whole\n")
        self.closing.callback(shutil.rmtree, in_tmp.parent)
        self.facts["in_tmp"] = str(in_tmp)
        in_shm = Path("/dev/shm") / f"cc-attack-{os.getpid()}-{self.folder.name}"
        in_shm.write_text("whole\n")
        self.closing.callback(in_shm.unlink, missing_ok=True)
        self.facts["in_shm"] = str(in_shm)
        libc = ctypes.CDLL(None)
        shared = libc.shmget(self.facts["shm_key"], 4096, 0o1600)
        self.closing.callback(libc.shmctl, shared, 0, None)

    @property
    def environment(self) -> dict[str, str]:
        """Return the user's environment."""
        return {
            **os.environ, "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.runtime),
            "XDG_STATE_HOME": str(self.home / ".local/state"), "XDG_CACHE_HOME": str(self.home / ".cache"),
        }  # fmt: skip

    def sandbox(self, kind: Kind) -> Sandbox:
        """Return the sandbox of that kind for this world."""
        if kind not in self._sandboxes:
            self._sandboxes[kind] = Sandbox(SETTINGS, self.private, (self.data,), self.environment, (kind,))
        return self._sandboxes[kind]

    async def run(
        self, kind: Kind, command: str, *, root: Path | None = None, network: bool = False, limit_s: float = 300
    ) -> tuple[Ended, str]:
        """Run a shell command in a kind of sandbox."""
        used, output, here = self.sandbox(kind), bytearray(), root or self.workspace
        argv = ["/bin/sh", "-c", command]

        def confine(pipes: Pipes) -> Confined:
            assert used.kind == kind
            return used.confine(argv, here, here, self.environment, pipes, network=network)

        for _ in range(20):
            output.clear()
            ended = await run_program(argv, cwd=here, env={}, on_output=output.extend, limit_s=limit_s, confine=confine)
            if ended.has_begun:  # otherwise a socket of another test was removed
                break
        return ended, output.decode("utf-8", "replace")

    def tries(self, kind: str) -> str:
        """Return the command that runs the attempts for a kind."""
        facts = self.workspace / "facts.json"
        facts.write_text(json.dumps({**self.facts, "kind": kind}))
        return f"{Path(sys.executable).resolve()} -I {shutil.copy(TRIES, self.workspace)} {facts}"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _echo(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            said, address = one.recvfrom(100)
            if said == _ENOUGH:
                break
            one.sendto(b"heard", address)


def _end_echo(one: socket.socket, thread: threading.Thread) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.sendto(_ENOUGH, one.getsockname())
    thread.join()


def wait_for(is_so: Any) -> None:
    """Wait until a condition is true."""
    until = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def results_of(output: str) -> dict[str, bool]:
    """Return the results that the attempts report."""
    line = next((line for line in output.splitlines() if line.startswith("RESULTS ")), "")
    assert line, output
    found: dict[str, bool] = json.loads(line.removeprefix("RESULTS "))
    return found


@pytest.fixture
def world() -> Iterator[World]:
    """Return a world to attack."""
    with folder_outside_tmp("attacks-") as folder, contextlib.ExitStack() as closing:
        yield World(folder, closing)


@pytest.fixture(params=LINUX_KINDS)
def kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kind:
    """Return each kind of sandbox that this machine supports."""
    tried = Sandbox(SETTINGS, tmp_path_factory.mktemp("private"), kinds=(request.param,))
    if not tried.kind:
        pytest.skip(f"no sandbox of the kind {request.param} here: {tried.why_none()}")
    found: Kind = request.param
    return found


async def test_no_attempt_leaves_the_sandbox(world: World, kind: Kind, tally: Tally) -> None:
    """No attempt succeeds, and nothing outside has changed."""
    before = {path.name: path.read_bytes() for path in world.outside.iterdir() if path.is_file()}
    _, output = await world.run(kind, world.tries(kind))
    results = results_of(output)
    after = {path.name: path.read_bytes() for path in world.outside.iterdir() if path.is_file()}
    got_in = sorted(name for name, is_in in results.items() if is_in)
    tally(f"sandbox: escapes ({kind})", tried=len(results), held=len(results) - len(got_in))
    assert got_in == []
    assert after == before
    assert not (world.home / ".bashrc").exists()
    assert (world.home / ".cache/program").read_text() == ""
    assert Path(world.facts["in_tmp"]).read_text() == "whole\n"
    assert len(results) >= 90


async def test_the_sandbox_launcher_loads_no_library_of_the_workspace(
    world: World, kind: Kind, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`LD_LIBRARY_PATH=:/opt/lib`: a fake libc there does not keep bubblewrap and the launcher from starting.

    The command gets the variable unchanged: with the fake libc `sh` cannot start, without it `sh` prints the variable.
    """
    paths = (":/opt/lib", "/opt/lib:", ".", "lib", str(world.workspace / "lib"))
    held = 0
    for one in paths:
        monkeypatch.setenv("LD_LIBRARY_PATH", one)
        folders = (world.workspace, world.workspace / "lib")
        folders[1].mkdir(exist_ok=True)
        _, output = await world.run(kind, "printenv LD_LIBRARY_PATH")
        for folder in folders:
            (folder / "libc.so.6").write_text("not a library")
        _, false = await world.run(kind, "exit 0")
        held += output.strip() == one and "libc.so.6" in false and "/bin/sh" in false
        for folder in folders:
            (folder / "libc.so.6").unlink()
    tally(f"sandbox: libraries of the workspace ({kind})", tried=len(paths), held=held)
    assert held == len(paths)


async def test_the_attempts_succeed_without_a_sandbox(world: World) -> None:
    """Every attempt that this user's permissions allow succeeds."""
    command = world.tries("control").split()
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=world.workspace, capture_output=True, text=True, env=world.environment
    )
    results = results_of(done.stdout)
    assert [name for name, is_in in results.items() if not is_in] == [], done.stderr
    assert len(results) >= 60


LEFT_BEHIND = (
    "sleep {} & true",
    "nohup sleep {} >/dev/null 2>&1 & true",
    "setsid sleep {} & true",
    "(setsid sh -c 'sleep {} & exit' &) ; true",
    "trap '' TERM; sleep {} & true",
    "setsid sh -c \"trap '' TERM HUP INT; sleep {}\" & true",
    'python3 -c "import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0);'
    " os.execlp('sleep', 'sleep', '{}')\"",
)


def _runs(mark: str) -> bool:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if mark.encode() in (folder / "cmdline").read_bytes():
                    return True
    return False


@pytest.mark.slow("waits for the end of processes in every sandbox")
async def test_nothing_outlives_a_command(world: World, kind: Kind, tally: Tally) -> None:
    """Background processes end with the command, whatever session they are in and whatever signals they ignore."""
    held, commands = 0, LEFT_BEHIND[-amount(3, full=len(LEFT_BEHIND)) :]
    for number, command in enumerate(commands):
        mark = f"77{os.getpid()}{number}"
        ended, output = await world.run(kind, command.format(mark))
        assert ended.code == 0, output
        held += not _runs(mark) and ended.left_running
    tally(f"sandbox: processes left behind ({kind})", tried=len(commands), held=held)
    assert held == len(commands)


@pytest.mark.slow("waits for time limits in every sandbox")
async def test_nothing_outlives_the_time_limit_or_a_cancelled_call(world: World, kind: Kind) -> None:
    mark = f"78{os.getpid()}"
    ended, _ = await world.run(kind, f"setsid sleep {mark} & sleep {mark}", limit_s=1)
    assert ended.code is None
    assert not _runs(mark)
    task = asyncio.ensure_future(world.run(kind, f"setsid sleep {mark} & sleep {mark}"))
    async with asyncio.timeout(20):
        await asyncio.to_thread(wait_for, lambda: _runs(mark))
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert not _runs(mark)


@pytest.mark.slow("waits for the end of programs in every sandbox")
async def test_a_program_may_tidy_up_before_it_ends(world: World, kind: Kind) -> None:
    ended, output = await world.run(kind, "trap 'echo tidied; exit 0' TERM; sleep 60 & wait", limit_s=1.5)
    assert ended.code is None
    assert "tidied" in output


HOST = """
import asyncio, os, pathlib, sys
from codecompanion.settings_sections import SandboxSettings
from codecompanion.tools.process import run_program
from codecompanion.tools.sandbox.sandbox import Sandbox

kind, private, workspace, command = sys.argv[1:]
settings = SandboxSettings(mode="required", write=(), read=(), network=False)
sandbox = Sandbox(settings, pathlib.Path(private), kinds=(kind,))
assert sandbox.kind
here, argv = pathlib.Path(workspace), ["/bin/sh", "-c", command]
confine = lambda pipes: sandbox.confine(argv, here, here, os.environ, pipes, network=False)
asyncio.run(run_program(argv, cwd=here, env={}, on_output=print, confine=confine))
"""


def test_nothing_outlives_a_killed_host(world: World, kind: Kind) -> None:
    mark = f"79{os.getpid()}"
    environment = {**os.environ, "PYTHONPATH": str(Path(sandbox_module.__file__).parents[3])}
    arguments = [kind, str(world.private), str(world.workspace), f"setsid sleep {mark} & sleep {mark}"]
    process = subprocess.Popen([sys.executable, "-c", HOST, *arguments], env=environment)
    try:
        wait_for(lambda: b"sleep" in _commands_with(mark))
    finally:
        _end(process)
    wait_for(lambda: not _runs(mark))


def _commands_with(mark: str) -> list[bytes]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if mark.encode() in words:
                    found.append(words[0])
    return found


async def test_a_fork_bomb_ends(world: World, kind: Kind, tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of processes is limited, and all of them end with the command."""
    if kind == "landlock" and os.getuid() == 0:
        pytest.skip("without namespaces the kernel bounds no processes of root, and the launcher comes too late")
    if os.getuid() == 0 and not _bounds_root():
        pytest.skip("this kernel bounds no processes of root")
    monkeypatch.setattr(sandbox_module, "MAX_PROCESSES", 300)
    mark = f"76{os.getpid()}"
    bombs = (
        f"f() {{ f | f & }}; f; sleep {mark}",
        f"while :; do setsid sleep {mark} & done",
        f"while :; do sh -c 'sleep {mark} & sleep {mark}' & done",
    )
    held, bombs = 0, bombs[-amount(1, full=len(bombs)) :]
    for bomb in bombs:
        ended, output = await world.run(kind, bomb, limit_s=15)
        held += (ended.excess == "processes" or "annot fork" in output) and not _runs(mark)
    tally(f"sandbox: fork bombs ({kind})", tried=len(bombs), held=held)
    assert held == len(bombs)


def _bounds_root() -> bool:
    return tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) >= (6, 14)


@pytest.mark.slow("fills the memory in every sandbox")
async def test_memory_has_a_limit(world: World, kind: Kind, tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module, "_memory_limit", lambda: 400_000_000)
    python = Path(sys.executable).resolve()
    hold = "print(1, flush=True); import time; time.sleep(60)"
    eaters = (
        f"{python} -c 'import mmap; x = mmap.mmap(-1, 5 * 10**8); [x.write(bytes(10**7)) for _ in range(50)]; {hold}'",
        f"{python} -c 'import os; n = os.memfd_create(str()); [os.write(n, bytes(10**7)) for _ in range(50)]; {hold}'",
        f"{python} -c 'x = bytearray(10**9)'",
        f"for n in 1 2 3 4 5 6; do {python} -c 'import time; x = bytearray(10**8); time.sleep(60)' & done; wait",
    )
    held = 0
    for eater in eaters:
        ended, output = await world.run(kind, eater, limit_s=60)
        held += ended.code not in (0, None) and ("MemoryError" in output or ended.excess == "memory")
    tally(f"sandbox: memory ({kind})", tried=len(eaters), held=held)
    assert held == len(eaters)


@pytest.mark.slow("builds a project in every sandbox")
async def test_a_build_works_in_the_sandbox(world: World, kind: Kind) -> None:
    """Pipes, temporary files, shared memory, sockets, git and the loopback interface work inside."""
    python = Path(sys.executable).resolve()
    works = [
        "echo a | grep a", "mktemp && echo x > $TMPDIR/x && cat $TMPDIR/x", "mkdir -p build && echo x > build/x",
        "git add -A && git -c user.name=a -c user.email=a@b commit -qm one && git log --oneline | grep one",
        f"{python} -c 'import subprocess; subprocess.run([\"true\"], check=True)'",
        "test -w /dev/null && echo x > /dev/null && head -c 4 /dev/urandom | wc -c", "ls ~ >/dev/null",
        "ps >/dev/null || true; cat /proc/cpuinfo | grep -q .", "getconf _NPROCESSORS_ONLN",
        # As sanitizers and the race detector of Go do.
        f"{python} -c 'import mmap as m; m.mmap(-1, 14 << 40, m.MAP_PRIVATE | m.MAP_ANONYMOUS | 0x4000)'",
        "test $npm_config_fetch_retries = 0",
    ]  # fmt: skip
    if kind != "landlock":
        works += [
            f"{python} -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [1]))'",
            f'{python} -c \'import socket as s; l = s.create_server(("127.0.0.1", 0));'
            " s.create_connection(l.getsockname())'",
        ]
        assert world.sandbox(kind).kind == kind
        if world.sandbox(kind)._overlays:  # not with bubblewrap 0.8 as an ordinary user
            works.append("echo x >> ~/.cache/own && cat ~/.cache/own")
    for command in works:
        ended, output = await world.run(kind, command)
        assert ended.code == 0, (command, output)
    assert not (world.home / ".cache/own").exists()


async def test_an_allowed_network_is_reachable(world: World, kind: Kind) -> None:
    python = Path(sys.executable).resolve()
    command = f"{python} -c 'import socket; socket.create_connection((\"127.0.0.1\", {world.facts['tcp']}))'"
    assert (await world.run(kind, command))[0].code == 1
    assert (await world.run(kind, command, network=True))[0].code == 0
    abstract = f"{python} -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{world.facts['abstract']}\")'"
    assert (await world.run(kind, abstract, network=True))[0].code == 1


async def test_a_workspace_above_hidden_places_is_not_written(world: World, kind: Kind) -> None:
    """A folder that contains the home or the plugin's folder cannot be moved aside; a symlink to keys shows nothing."""
    used = world.sandbox(kind)
    link = world.folder / "link"
    link.symlink_to(world.home / ".ssh")
    move = f"mv {world.data} {world.data}2; mv {world.home}/.local {world.home}/.l2; echo x > {world.home}/.bashrc"
    for root, command in ((world.home, move), (world.folder, move), (Path("/"), move), (link, "cat id_ed25519")):
        assert used.only_reads(root)
        _, output = await world.run(kind, f"{command}; echo x > $TMPDIR/mine && echo wrote", root=root)
        assert CANARY not in output
        assert "wrote" in output or (root == link and kind == "landlock"), output
    assert (world.data / "sessions.db").exists()
    assert (world.home / ".local/bin").is_dir()
    assert not (world.home / ".bashrc").exists()
    assert not used.only_reads(world.workspace)


@pytest.mark.slow("many commands in every sandbox")
async def test_no_command_prepares_what_the_next_one_reads(world: World, kind: Kind, tally: Tally) -> None:
    """A hidden place in the workspace cannot be moved with its folder, nor shown through a symlink for git."""
    dotfiles = world.home / "dotfiles"
    for name in ("keys/gh/hosts.yml", "a/b/gcloud/creds.db"):
        (dotfiles / name).parent.mkdir(parents=True)
        (dotfiles / name).write_text(CANARY)
    for link, target in ((".config/gh", "keys/gh"), (".config/gcloud", "a/b/gcloud")):
        shutil.rmtree(world.home / link)
        (world.home / link).symlink_to(dotfiles / target)
    (world.home / ".config/git").mkdir()
    (world.home / ".config/git/credentials").write_text(CANARY)
    kube = world.home / ".kube/config"
    to_git = "mkdir -p .git/worktrees .git/modules; ln -s ../../../home/.kube .git/{}; touch .git/{}/HEAD"
    pairs = (
        (dotfiles, "cat */gh/* a/b/gcloud/*; mv keys k; mv a c; mv k/gh k/x", "cat */gh/* k/* */b/*/*"),
        (world.home / ".config", "cat git/*; mv git g; mv gh x; mv gcloud y", "cat */credentials x/* y/*"),
        (world.workspace, to_git.replace("{}", "worktrees/x"), f"cat {kube} .git/worktrees/x/config"),
        (world.workspace, to_git.replace("{}", "modules/x"), f"cat {kube} .git/modules/x/config"),
    )  # fmt: skip
    held = 0
    for root, first, then in pairs:
        outputs = [(await world.run(kind, command, root=root))[1] for command in (first, then)]
        held += not any(CANARY in output for output in outputs)
    tally(f"sandbox: commands that prepare the next one ({kind})", tried=len(pairs), held=held)
    assert held == len(pairs)
    if kind != "landlock":
        assert (await world.run(kind, "touch keys/mine a/mine b", root=dotfiles))[0].code == 0


@pytest.mark.slow("many commands in every sandbox")
async def test_submodules_keep_their_hooks_and_configuration(world: World, kind: Kind, tally: Tally) -> None:
    """They are protected whatever their names are, even if folders above them are moved."""
    if kind == "landlock":
        pytest.skip("it cannot make a part of the workspace read-only, and reports that")
    git, names = world.workspace / ".git", ("one", "libs/foo", "one/modules/in/side")
    for name in names:
        (git / "modules" / name / "hooks").mkdir(parents=True)
        for file in ("HEAD", "config"):
            (git / "modules" / name / file).touch()
    await world.run(kind, "cd .git; mv modules m; mv modules/libs l; mv modules/one o")
    for name in names:
        await world.run(
            kind, f"cd .git/modules/{name}; echo x >> config; echo x > hooks/pre-commit; echo x > c && mv c config"
        )
    await world.run(kind, "for one in .git/*/config .git/*/*/config; do echo x >> $one; done")
    for number in range(1000):  # too many folders to search for submodules
        (git / f"modules/{number}").mkdir(exist_ok=True)
    for name in names:
        await world.run(kind, f"echo x >> .git/modules/{name}/config")
    places = [git / "modules" / name for name in names]
    held = sum((one / "config").read_text() == "" and not list((one / "hooks").iterdir()) for one in places)
    tally(f"sandbox: submodules ({kind})", tried=len(names), held=held)
    assert held == len(names)


async def test_a_repository_without_hooks_gets_none(world: World, kind: Kind) -> None:
    if kind == "landlock":
        pytest.skip("it cannot make a part of the workspace read-only, and reports that")
    shutil.rmtree(world.workspace / ".git/hooks")
    await world.run(kind, "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; mv .git .g2")
    assert list((world.workspace / ".git/hooks").iterdir()) == []
