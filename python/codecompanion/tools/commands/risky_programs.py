"""Lists programs not allowed as a prefix, because they run or write things their arguments name (`command_prefix`).

The lists cannot be complete; a program missing from them matters only when the user accepts it as a prefix. Pure.
"""

from __future__ import annotations

from codecompanion.formats.regex import regex

COMPILERS = frozenset("gcc g++ cc c++ clang clang++ tcc ld".split())
"""Compilers, which start programs and plugins named in their options. A prefix and a version are allowed
(`x86_64-linux-gnu-gcc-12`)."""

RUNNERS = frozenset(
    "sh bash dash ash zsh ksh mksh yash fish csh tcsh nu xonsh elvish pwsh powershell cmd osascript"
    " python pythonw pypy ipython jython micropython graalpy node nodejs deno bun tsx ts-node perl ruby jruby irb php"
    " lua luajit texlua tclsh wish guile racket sbcl clisp julia r rscript octave swift scala groovy kotlin jshell java"
    " ghci runghc ocaml elixir iex erl escript clojure bb janet m4 gawk"
    " git make gmake npm npx yarn pnpm pnpx bunx corepack uv uvx pip pipx poetry pipenv pdm hatch rye conda mamba"
    " micromamba tox nox invoke coverage cargo rustup go zig dotnet mvn mvnw gradle gradlew ant sbt stack cabal mix"
    " rake bundle bundler gem composer just task ninja cmake meson bazel bazelisk scons nix opam dune mise asdf direnv"
    " docker podman nerdctl kubectl oc vagrant heroku flatpak snap brew apt apt-get dpkg dnf yum apk pacman systemctl"
    " code gh".split()
)
"""Programs that run anything their arguments name; a prefix must include the word that determines the program they run.
"""

NEVER = (
    frozenset(
        "eval exec source . command builtin find fd fdfind xargs parallel awk mawk nawk sed ssh su sudo sudoedit doas"
        " pkexec runuser setpriv gosu su-exec env nice ionice chrt taskset numactl nohup time timeout setsid"
        " stdbuf unbuffer"
        " watch entr watchexec chroot unshare nsenter bwrap firejail proot fakeroot flock prlimit cpulimit systemd-run"
        " start-stop-daemon dbus-run-session xvfb-run script expect rlwrap strace ltrace gdb lldb valgrind perf"
        " hyperfine"
        " tmux screen zellij dc gnuplot sqlite psql mysql mariadb mongosh redis-cli lftp ftp sftp gdbserver"
        " busybox toybox tini dumb-init at batch crontab socat nc ncat netcat nix-shell"
        " vi vim nvim view vimdiff emacs emacsclient ed ex nano"
        " ld.so".split()
    )
    | COMPILERS
)
"""Programs whose later arguments can name any program to run."""

WRITERS = frozenset("cp mv tee ln link install dd rsync scp truncate sponge".split())
"""Programs that write to any path their operands name, including guarded files (a Makefile, .git/hooks)."""

ANYTHING = {
    "git": frozenset("config bisect submodule filter-branch difftool mergetool send-email apply am".split()),
    "npm": frozenset("explore config set".split()),
    "go": frozenset(("env",)),
    "pip": frozenset("install wheel download".split()),
    "gh": frozenset("alias config extension".split()),
}
"""Subcommands that run a program, or change what later commands run, whatever their options."""

DESTROYERS = frozenset("rm shred unlink".split())
"""Programs that delete or destroy the files their operands name."""

DESTROYING = {"git": frozenset("checkout restore reset clean rm stash".split())}
"""Subcommands that irrecoverably destroy work stored nowhere else (`git checkout -- .`)."""

WRITING = {"git": frozenset("mv bundle checkout-index".split())}
"""Subcommands that write to any path their operands name (`git mv -f evil Makefile`)."""

_RUN = frozenset(("run",))
_EXEC = frozenset(("exec",))
_RUN_OR_EXEC = _RUN | _EXEC
STARTS = {
    "npm": frozenset("exec x run run-script".split()),
    "pnpm": frozenset("exec dlx node run".split()),
    "yarn": frozenset("exec dlx node run".split()),
    "bun": frozenset("run x exec repl create".split()),
    "corepack": frozenset("npm npx yarn yarnpkg pnpm pnpx".split()),
    "deno": frozenset("run eval repl serve compile".split()),
    "uv": frozenset("run pip".split()),
    "uv tool": _RUN,
    "pipx": _RUN,
    "poetry": _RUN,
    "pipenv": _RUN,
    "pdm": _RUN,
    "hatch": _RUN,
    "rye": _RUN,
    "conda": _RUN,
    "mamba": _RUN,
    "micromamba": _RUN,
    "coverage": _RUN,
    "rustup": _RUN,
    "go": frozenset("run tool".split()),
    "dotnet": frozenset("exec script fsi".split()),
    "stack": frozenset("exec runghc runhaskell script ghci".split()),
    "cabal": _EXEC,
    "mix": _RUN,
    "zig": _RUN,
    "bundle": _EXEC,
    "bundler": _EXEC,
    "composer": _EXEC,
    "opam": _EXEC,
    "dune": _EXEC,
    "mise": frozenset("exec x".split()),
    "asdf": _EXEC,
    "direnv": _EXEC,
    "nix": frozenset("run shell develop eval".split()),
    "docker": _RUN_OR_EXEC,
    "podman": _RUN_OR_EXEC,
    "nerdctl": _RUN_OR_EXEC,
    "docker compose": _RUN_OR_EXEC,
    "kubectl": _RUN_OR_EXEC,
    "oc": _RUN_OR_EXEC,
    "flatpak": _RUN,
    "snap": _RUN,
}
"""Subcommands that start a program or a file of the user's choice: the words after them are a separate command."""

STARTERS = frozenset("npx pnpx bunx uvx".split())
"""Programs that start a program named by their arguments, without a subcommand."""

MODULES = frozenset(
    "timeit pdb ipdb pudb bdb cProfile profile trace code runpy IPython ipykernel idlelib debugpy kernprof asyncio"
    " sqlite3 zipapp".split()
)
"""Python modules that run any file or statement (`python -m timeit`)."""

_VERSION = regex(r"(?:[-_]|(?<![0-9])(?<![0-9][.]))[0-9]+(?:[.][0-9]+)*[a-z]?(?:-dbg)?$")


def known_name(word: str) -> str:
    """Return the name of a program without its folder, version and target: `/opt/bin/python3.11` is `python`."""
    name = word.rpartition("/")[2].lower().removesuffix(".exe")
    plain = _VERSION.sub("", name) or name
    target = plain.rpartition("-")[2]
    if target in COMPILERS:
        return target
    return name if name in NEVER or name in RUNNERS else plain
