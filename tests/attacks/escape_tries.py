"""Attempts to leave the sandbox, run inside it: `python -I escape_tries.py FACTS`. Standard library only.

FACTS is a JSON file in the workspace with the locations of the canaries. Each attempt returns whether it succeeded; an
exception means that it failed. With `control` they must succeed without the sandbox, or they would prove nothing.
"""

import contextlib
import ctypes
import json
import os
import platform
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path

TRIES = {}
F = {}
_libc = ctypes.CDLL(None, use_errno=True)
NAMESPACES = ("bubblewrap", "namespaces")
EVERYWHERE = (*NAMESPACES, "landlock")
_X86 = platform.machine() == "x86_64"


def attack(kinds=EVERYWHERE, control=True, root=False):
    """Register an attempt. `control`: it succeeds without the sandbox, `root`: only as root."""

    def register(function):
        TRIES[function.__name__] = (function, kinds, control, root)
        return function

    return register


def call(x86, arm, *arguments):
    """Make a system call by number; return its result or raise its error."""
    _libc.syscall.restype = ctypes.c_long
    result = _libc.syscall(ctypes.c_long(x86 if _X86 else arm), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def reads(path):
    """Return whether the canary at a path is readable."""
    return F["canary"].encode() in Path(path).read_bytes()


def writes(path):
    """Return whether a host file at a path is writable."""
    with open(path, "ab") as file:
        file.write(b"x")
    return True


# ---- writing outside


@attack()
def write_outside():
    return writes(F["outside"] + "/file")


@attack()
def write_a_new_file_outside():
    return writes(F["outside"] + "/new")


@attack()
def write_through_parents():
    return writes(os.path.relpath(F["outside"] + "/file"))


@attack()
def write_through_a_link():
    os.symlink(F["outside"], "link")
    return writes("link/file")


@attack()
def write_through_a_link_to_a_file():
    os.symlink(F["outside"] + "/file", "link-to-file")
    return writes("link-to-file")


@attack()
def write_through_a_hard_link():
    os.link(F["outside"] + "/file", "hard")
    return writes("hard")


@attack()
def write_through_proc_self_root():
    return writes("/proc/self/root" + F["outside"] + "/file")


@attack()
def write_through_proc_self_cwd():
    return writes("/proc/self/cwd/" + os.path.relpath(F["outside"]) + "/file")


@attack(control=False)
def write_through_the_root_of_process_1():
    return writes("/proc/1/root" + F["outside"] + "/file")


@attack()
def write_through_the_root_of_the_parent():
    return writes(f"/proc/{os.getppid()}/root" + F["outside"] + "/file")


@attack()
def write_through_the_root_of_the_editor():
    return writes(f"/proc/{F['editor']}/root" + F["outside"] + "/file")


@attack()
def write_through_the_folder_of_the_editor():
    return writes(f"/proc/{F['editor']}/cwd/file")


@attack()
def write_through_a_descriptor_of_a_folder():
    folder = os.open(F["outside"], os.O_RDONLY | os.O_DIRECTORY)
    return os.write(os.open("file", os.O_WRONLY | os.O_APPEND, dir_fd=folder), b"x") == 1


@attack()
def write_through_an_o_path_descriptor():
    place = os.open(F["outside"] + "/file", os.O_PATH)
    return writes(f"/proc/self/fd/{place}")


@attack(control=False)
def write_through_an_inherited_descriptor():
    mine = os.stat(".").st_dev
    for descriptor in range(3, 256):
        with contextlib.suppress(OSError):
            found = os.fstat(descriptor)
            if (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)) and found.st_dev == mine:
                link = os.readlink(f"/proc/self/fd/{descriptor}")
                if not link.startswith((os.getcwd(), sys.prefix, sys.base_prefix)) and "escape_tries" not in link:
                    return True
    return False


@attack()
def truncate_outside():
    os.truncate(F["outside"] + "/to-truncate", 0)
    return True


@attack()
def unlink_outside():
    os.unlink(F["outside"] + "/to-unlink")
    return True


@attack()
def rename_outside():
    os.rename(F["outside"] + "/to-rename", F["outside"] + "/renamed")
    return True


@attack()
def move_into_the_workspace():
    os.rename(F["outside"] + "/to-move", "moved")
    return True


@attack()
def make_a_folder_outside():
    os.mkdir(F["outside"] + "/folder")
    return True


@attack()
def remove_a_folder_outside():
    os.rmdir(F["outside"] + "/to-remove")
    return True


@attack()
def make_a_link_outside():
    os.symlink("/", F["outside"] + "/made-link")
    return True


@attack()
def make_a_pipe_outside():
    os.mkfifo(F["outside"] + "/pipe")
    return True


@attack()
def make_a_socket_outside():
    socket.socket(socket.AF_UNIX).bind(F["outside"] + "/socket")
    return True


@attack()
def make_an_unnamed_file_outside():
    return os.open(F["outside"], os.O_TMPFILE | os.O_RDWR) > 0


@attack(kinds=NAMESPACES)
def change_the_mode_outside():
    os.chmod(F["outside"] + "/file", 0o777)
    return True


@attack(kinds=NAMESPACES)
def change_the_time_outside():
    os.utime(F["outside"] + "/file", (0, 0))
    return True


@attack(kinds=NAMESPACES)
def change_an_attribute_outside():
    os.setxattr(F["outside"] + "/file", "user.cc", b"1")
    return True


@attack()
def write_in_the_home_folder():
    return writes(F["home"] + "/.bashrc")


@attack()
def write_a_program_in_the_home_folder():
    return writes(F["home"] + "/.local/bin/git")


@attack()
def write_a_configuration():
    return writes(F["home"] + "/.config/nvim/init.lua")


@attack()
def write_into_a_cache_of_the_user():
    writes(F["home"] + "/.cache/program")
    # A private copy receives the write; the test checks whether the real file changed.
    return bool(F["kind"] == "control")


@attack()
def write_in_tmp():
    return writes(F["in_tmp"])


@attack(kinds=NAMESPACES)
def see_shared_memory():
    return os.path.exists(F["in_shm"])


@attack()
def write_shared_memory():
    return os.path.exists(F["in_shm"]) and writes(F["in_shm"])


# ---- mounts, roots and namespaces


def _mount(source, target, kind, flags):
    if _libc.mount(source, target, kind, ctypes.c_ulong(flags), None) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    return True


@attack(control=False)
def mount_a_file_system():
    return _mount(b"none", os.fsencode(F["outside"]), b"tmpfs", 0)


@attack(control=False)
def remount_writable():
    return _mount(None, b"/", None, 32 | 4096)


@attack(control=False)
def bind_over():
    return _mount(b"/etc", os.fsencode(os.getcwd()), None, 4096)


@attack(control=False)
def unmount_what_hides():
    return _libc.umount2(os.fsencode(F["home"] + "/.ssh"), 2) == 0


@attack(control=False)
def unmount_proc():
    return _libc.umount2(b"/proc", 2) == 0


@attack(control=False)
def open_a_mount_tree():
    return call(428, 428, -100, b"/", ctypes.c_uint(1)) >= 0


@attack(control=False)
def set_attributes_of_a_mount():
    return (
        call(442, 442, -100, b"/", ctypes.c_uint(0x8000), (ctypes.c_uint64 * 4)(0, 1, 0, 0), ctypes.c_size_t(32)) == 0
    )


@attack(control=False)
def open_a_file_system():
    return call(430, 430, b"tmpfs", ctypes.c_uint(0)) >= 0


@attack(control=False)
def change_the_root():
    os.mkdir("jail")
    os.chroot("jail")
    return True


@attack(control=False)
def pivot_the_root():
    return call(155, 41, b".", b".") == 0


def _unshares(flags):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if _libc.unshare(flags) == 0 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@attack()
def unshare_users():
    return _unshares(0x10000000)


@attack(root=True)
def unshare_mounts():
    return _unshares(0x20000)


@attack(root=True)
def unshare_networks():
    return _unshares(0x40000000)


@attack()
def clone_into_a_user_namespace():
    child = call(56, 220, ctypes.c_ulong(0x10000000 | signal.SIGCHLD), None, None, None, None)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


@attack()
def clone3_into_a_user_namespace():
    arguments = (ctypes.c_uint64 * 8)(0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    child = call(435, 435, arguments, ctypes.c_size_t(64))
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


@attack(root=True)
def enter_the_mounts_of_the_editor():
    place = os.open(f"/proc/{F['editor']}/ns/mnt", os.O_RDONLY)
    return _libc.setns(place, 0) == 0


@attack(control=False)
def enter_the_users_of_process_1():
    place = os.open("/proc/1/ns/user", os.O_RDONLY)
    return _libc.setns(place, 0) == 0


@attack(root=True)
def open_by_handle():
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount_id = ctypes.c_int()
    call(303, 264, -100, os.fsencode(F["outside"] + "/file"), handle, ctypes.byref(mount_id), 0)
    place = os.open(F["outside"], os.O_RDONLY)
    return call(304, 265, place, handle, os.O_WRONLY) >= 0


@attack(root=True)
def make_a_device():
    os.mknod("disk", 0o600 | stat.S_IFBLK, os.stat("/").st_dev)
    return True


@attack(root=True)
def write_a_kernel_setting():
    return os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY) > 0


@attack(control=False)
def open_the_system_request_trigger():
    return os.open("/proc/sysrq-trigger", os.O_WRONLY) > 0


@attack(root=True)
def write_below_sys():
    return os.open("/sys/kernel/mm/transparent_hugepage/enabled", os.O_WRONLY) > 0


@attack(root=True)
def write_kernel_memory():
    return any(os.open(path, os.O_WRONLY) > 0 for path in ("/dev/mem", "/dev/kmsg") if os.path.exists(path))


# ---- reading what is hidden


def _hidden(name, path, kinds=EVERYWHERE):
    def read():
        return reads(path())

    read.__name__ = name
    attack(kinds=kinds)(read)


for _number, _name in enumerate((
    ".ssh/id_ed25519", ".aws/credentials", ".gnupg/secring.gpg", ".netrc", ".npmrc", ".pypirc", ".git-credentials",
    ".config/gh/hosts.yml", ".docker/config.json", ".kube/config", ".password-store/a.gpg", ".cargo/credentials.toml",
    ".mozilla/firefox/x/logins.json", ".config/google-chrome/Default/Cookies", ".local/state/nvim/shada/main.shada",
    ".local/state/nvim/undo/file", ".bash_history", ".local/share/keyrings/login.keyring", ".config/gcloud/creds.db",
    ".env", ".local/share/opencode/auth.json", ".config/stripe/config.toml", ".config/pypoetry/auth.toml",
    ".local/share/atuin/history.db", ".irb_history", ".cursor/mcp.json", ".config/Code/User/x",
)):  # fmt: skip
    _hidden(f"read_{_number}_{_name.replace('/', '_')}", lambda name=_name: f"{F['home']}/{name}")

_hidden("read_the_history_of_chats", lambda: F["data"] + "/sessions.db")
_hidden("read_through_proc_self_root", lambda: "/proc/self/root" + F["home"] + "/.ssh/id_ed25519")
_hidden("read_through_the_parents_root", lambda: f"/proc/{os.getppid()}/root" + F["home"] + "/.ssh/id_ed25519")
_hidden("read_through_the_editors_root", lambda: f"/proc/{F['editor']}/root" + F["home"] + "/.ssh/id_ed25519")
_hidden("read_through_parents", lambda: os.path.relpath(F["home"]) + "/.ssh/id_ed25519")
_hidden("read_through_a_link_that_was_there", lambda: "link-to-key")
_hidden("read_a_runtime_file", lambda: F["runtime"] + "/secret")


@attack()
def read_through_a_new_link():
    os.symlink(F["home"] + "/.ssh", "ssh")
    return reads("ssh/id_ed25519")


@attack()
def read_through_a_new_hard_link():
    os.link(F["home"] + "/.ssh/id_ed25519", "key")
    return reads("key")


@attack()
def read_after_moving_the_folder():
    os.rename(F["home"] + "/.aws", F["home"] + "/.aws2")
    try:
        return reads(F["home"] + "/.aws2/credentials")
    finally:
        os.rename(F["home"] + "/.aws2", F["home"] + "/.aws")


@attack()
def read_through_a_descriptor_of_the_home_folder():
    folder = os.open(F["home"], os.O_RDONLY)
    inner = os.open(".ssh", os.O_RDONLY, dir_fd=folder)
    return F["canary"].encode() in os.read(os.open("id_ed25519", os.O_RDONLY, dir_fd=inner), 1000)


@attack()
def map_a_hidden_file():
    import mmap

    with open(F["home"] + "/.ssh/id_ed25519", "rb") as file:
        return F["canary"].encode() in mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)[:]


@attack()
def run_a_hidden_program():
    return subprocess.run([F["home"] + "/.ssh/program"], capture_output=True).stdout.strip() == b"ran"


@attack(root=True)
def read_the_shadow_file():
    return b":" in Path("/etc/shadow").read_bytes()


@attack(kinds=NAMESPACES)
def list_a_hidden_folder():
    return bool(os.listdir(F["home"] + "/.ssh"))


# ---- other processes


@attack()
def read_the_editors_environment():
    return reads(f"/proc/{F['editor']}/environ")


@attack()
def read_all_environments():
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if reads(f"/proc/{name}/environ"):
                    return True
    return False


@attack(kinds=NAMESPACES)
def read_the_editors_command_line():
    return reads(f"/proc/{F['editor']}/cmdline")


@attack()
def read_the_editors_memory():
    with open(f"/proc/{F['editor']}/mem", "rb"):
        return True


@attack()
def read_the_editors_descriptors():
    return bool([os.readlink(f"/proc/{F['editor']}/fd/{name}") for name in os.listdir(f"/proc/{F['editor']}/fd")])


@attack()
def trace_the_editor():
    if _libc.ptrace(16, F["editor"], None, None) != 0:
        return False
    os.waitpid(F["editor"], 0x40000000)
    _libc.ptrace(17, F["editor"], None, None)
    return True


@attack()
def read_the_editors_memory_by_call():
    place = int(Path(f"/proc/{F['editor']}/stat").read_text().rpartition(")")[2].split()[47])
    buffer = ctypes.create_string_buffer(16)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 16)
    remote = (ctypes.c_void_p * 2)(place, 16)
    return call(310, 270, F["editor"], local, ctypes.c_ulong(1), remote, ctypes.c_ulong(1), ctypes.c_ulong(0)) > 0


@attack()
def signal_the_editor():
    os.kill(F["editor"], signal.SIGCONT)
    return True


@attack()
def signal_the_host():
    os.kill(F["host"], 0)
    return True


@attack()
def take_a_descriptor_of_the_editor():
    held = call(434, 434, F["editor"], 0)
    return call(438, 438, held, 0, 0) >= 0


@attack(kinds=NAMESPACES)
def limit_the_editor():
    resource.prlimit(F["editor"], resource.RLIMIT_CORE, (0, 0))
    return True


def _launcher():
    """Return the launcher's process, the nearest ancestor that runs it, or 1."""
    pid = os.getpid()
    while pid > 1 and b"launcher.py" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return max(1, pid)


@attack(control=False)
def read_the_launchers_environment():
    return b"=" in Path(f"/proc/{_launcher()}/environ").read_bytes()


@attack(control=False)
def trace_the_launcher():
    return _libc.ptrace(16, _launcher(), None, None) == 0


@attack(control=False)
def write_to_the_launchers_pipe():
    for name in os.listdir(f"/proc/{_launcher()}/fd"):
        writes(f"/proc/{_launcher()}/fd/{name}")
    return True


@attack(control=False)
def kill_the_launcher():
    os.kill(_launcher(), signal.SIGKILL)
    return False


@attack(kinds=("landlock",), control=False)
def signal_the_launcher():
    os.kill(_launcher(), 0)
    return True


# ---- the network, sockets


def _connects(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as one:
        one.settimeout(2)
        one.connect(address)
        one.send(b"attack")
        if kind == socket.SOCK_DGRAM:
            return one.recv(10) == b"heard"
        return True


@attack()
def connect_to_the_hosts_loopback():
    return _connects(socket.AF_INET, ("127.0.0.1", F["tcp"]))


@attack()
def connect_by_the_unspecified_address():
    return _connects(socket.AF_INET, ("0.0.0.0", F["tcp"]))


@attack()
def connect_by_ipv6():
    return bool(F["tcp6"]) and _connects(socket.AF_INET6, ("::1", F["tcp6"]))


@attack()
def connect_by_a_mapped_address():
    return bool(F["tcp6"]) and _connects(socket.AF_INET6, ("::ffff:127.0.0.1", F["tcp"]))


@attack()
def send_a_datagram():
    return _connects(socket.AF_INET, ("127.0.0.1", F["udp"]), socket.SOCK_DGRAM)


@attack()
def connect_to_an_abstract_socket():
    return _connects(socket.AF_UNIX, "\0" + F["abstract"])


@attack()
def connect_to_a_socket_of_the_home_folder():
    return _connects(socket.AF_UNIX, F["socket"])


@attack()
def connect_to_a_socket_of_the_runtime_folder():
    return _connects(socket.AF_UNIX, F["runtime"] + "/bus")


@attack()
def connect_to_a_socket_through_a_link():
    os.symlink(F["socket"], "to-socket")
    return _connects(socket.AF_UNIX, "to-socket")


@attack()
def ask_the_editor_by_its_socket():
    if not F["nvim"]:
        raise OSError("no Neovim")
    asked = [F["nvim"], "--clean", "--server", F["nvim_socket"], "--remote-expr", "$CC_CANARY"]
    said = subprocess.run(asked, capture_output=True, timeout=20).stdout
    return F["canary"].encode() in said


@attack(control=False)
def open_a_packet_socket():
    return bool(socket.socket(17, socket.SOCK_RAW, 0))


@attack(control=False)
def open_a_raw_socket():
    return bool(socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))


@attack(control=False)
def open_a_machine_socket():
    return bool(socket.socket(40, socket.SOCK_STREAM))


@attack(control=False)
def open_a_crypto_socket():
    return bool(socket.socket(38, socket.SOCK_SEQPACKET))


@attack(control=False)
def open_an_unknown_family():
    opened = []
    for family in range(3, 46):
        if family not in (2, 10, 16):
            with contextlib.suppress(OSError):
                opened.append(socket.socket(family, socket.SOCK_DGRAM))
    return bool(opened)


@attack(kinds=NAMESPACES)
def attach_shared_memory_of_the_host():
    return _libc.shmget(F["shm_key"], 0, 0) >= 0


# ---- rights, the kernel


@attack(root=True)
def hold_a_capability():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
    return int(line.split()[1], 16) != 0


@attack(root=True)
def gain_a_capability_by_a_program():
    found = subprocess.run(["/bin/sh", "-c", "grep CapEff /proc/self/status"], capture_output=True).stdout.split()
    return int(found[1], 16) != 0


@attack(root=True)
def become_another_user():
    pid = os.fork()
    if pid == 0:
        try:
            os.setuid(65534)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@attack(root=True)
def run_a_setuid_program():
    return subprocess.run([F["setuid"]], capture_output=True).stdout.strip() == b"65534"


@attack(control=False)
def make_a_setuid_program():
    shutil.copy("/bin/sh", "own")
    os.chmod("own", 0o4755)
    return subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0


@attack(root=True)
def load_a_filter_program():
    return call(321, 280, 0, struct.pack("IIII", 2, 4, 4, 1) + bytes(112), ctypes.c_uint(128)) >= 0


@attack()
def use_the_keyring():
    return call(250, 219, 0, ctypes.c_int(-4), 1) > 0


@attack()
def add_a_key():
    return call(248, 217, b"user", b"cc-attack", b"x", ctypes.c_size_t(1), ctypes.c_int(-2)) > 0


@attack()
def set_up_an_io_ring():
    return call(425, 425, ctypes.c_uint(1), ctypes.create_string_buffer(120)) >= 0


@attack(root=True)
def read_the_kernels_log():
    return call(103, 116, 3, ctypes.create_string_buffer(100), 100) >= 0


@attack(root=True)
def watch_events_of_the_kernel():
    attributes = struct.pack("IIQ", 1, 112, 0) + bytes(96)
    return call(298, 241, attributes, -1, 0, -1, ctypes.c_ulong(0)) >= 0


@attack(root=True)
def catch_faults():
    return call(323, 282, 0) >= 0


@attack(root=True)
def name_the_machine():
    return _libc.sethostname(os.fsencode(platform.node()), len(platform.node())) == 0


@attack(control=False)
def set_the_clock():
    return call(227, 112, 0, struct.pack("qq", int(time.time()), 0)) == 0


@attack(control=False)
def load_a_module():
    ctypes.set_errno(0)
    with contextlib.suppress(OSError):
        call(175, 105, b"x", ctypes.c_ulong(1), b"")
    return ctypes.get_errno() != 1


@attack(control=False)
def load_a_kernel():
    ctypes.set_errno(0)
    with contextlib.suppress(OSError):
        call(246, 104, ctypes.c_ulong(0), ctypes.c_ulong(0), None, ctypes.c_ulong(0))
    return ctypes.get_errno() != 1


@attack(root=True)
def watch_all_files():
    return call(300, 262, 0, os.O_RDONLY) >= 0


@attack(control=False)
def type_into_the_terminal():
    import fcntl

    _, other = os.openpty()
    os.setsid()
    fcntl.ioctl(other, 0x540E, 0)
    fcntl.ioctl(other, 0x5412, b"x")
    return True


@attack(kinds=NAMESPACES, control=False)
def raise_the_limit_of_processes():
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (soft + 1, soft + 1))
    return True


@attack(control=False)
def call_by_the_numbers_of_32_bits():
    if not _X86:
        return False
    return call(0x40000000 + 39, 0) > 0


@attack(control=False)
def trace_what_the_filter_denies():
    """A tracer may change a system call after the filter has checked it: the filter must check it again."""
    pid = os.fork()
    if pid == 0:
        _libc.ptrace(0, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0 if _libc.unshare(0x10000000) == 0 else 1)
    os.waitpid(pid, 0)
    _libc.ptrace(7, pid, None, None)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@attack()
def run_from_memory():
    place = os.memfd_create("program")
    os.write(place, f"#!/bin/sh\necho x >> {F['outside']}/file\n".encode())
    return subprocess.run([f"/proc/self/fd/{place}"], pass_fds=(place,), capture_output=True).returncode == 0


@attack()
def write_from_a_new_session():
    script = f"setsid sh -c 'echo x >> {F['outside']}/file'"
    return subprocess.run(["sh", "-c", script], capture_output=True).returncode == 0


# ---- the repository


@attack(kinds=NAMESPACES)
def write_a_hook():
    return writes(".git/hooks/post-commit")


@attack(kinds=NAMESPACES)
def set_a_program_of_git():
    with open(".git/config", "a") as file:
        file.write("[core]\n\tfsmonitor = ./evil\n")
    return True


@attack(kinds=NAMESPACES)
def configure_git():
    return subprocess.run(["git", "config", "core.hooksPath", "evil"], capture_output=True).returncode == 0


@attack(kinds=NAMESPACES)
def replace_the_configuration_of_git():
    Path(".git/config.new").write_text("[core]\n\tfsmonitor = ./evil\n")
    os.rename(".git/config.new", ".git/config")
    return True


@attack(kinds=NAMESPACES)
def replace_the_hooks():
    os.rename(".git/hooks", ".git/hooks.old")
    os.mkdir(".git/hooks")
    return True


@attack(kinds=NAMESPACES)
def replace_the_repository():
    os.rename(".git", ".git-old")
    os.mkdir(".git")
    return True


def main():
    """Run the attempts of a kind, each in a separate process; print the successful ones as JSON."""
    F.update(json.loads(Path(sys.argv[1]).read_text()))
    results = {}
    for name, (function, kinds, control, root) in TRIES.items():
        if F["kind"] == "control":
            if not control or (root and os.getuid() != 0):
                continue
        elif F["kind"] not in kinds:
            continue
        pid = os.fork()
        if pid == 0:
            signal.alarm(25)
            try:
                os._exit(42 if function() else 1)
            except BaseException as error:
                if F["kind"] == "control":
                    print(f"{name}: {type(error).__name__} {error}", file=sys.stderr)
            os._exit(1)
        results[name] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42
    print("RESULTS " + json.dumps(results), flush=True)


if __name__ == "__main__":
    main()
