"""The times of command runs: bounded, shared between Neovims, and forgotten when the user trusts the folder."""

from __future__ import annotations

import time
from pathlib import Path

from codecompanion.session.trust import command_runs
from codecompanion.session.trust.command_runs import MAX_RUNS, CommandRuns, Known, Run
from codecompanion.session.trust.decisions import MAX_BY_COMMANDS, Decisions, FileHash, TrustedFolder


def written(folder: Path, text: str = "x") -> FileHash:
    (folder / "AGENTS.md").write_text(text)
    return FileHash(str((folder / "AGENTS.md").resolve()), text)


def test_a_file_changed_during_a_command_is_the_commands_until_the_folder_is_trusted(tmp_path: Path) -> None:
    file = tmp_path / "data" / "runs.json"
    mine, theirs = CommandRuns(file), CommandRuns(file)
    before = written(tmp_path, "before")
    mine.begin(tmp_path, "a", [before])
    assert not theirs.wrote(before)
    during = written(tmp_path, "during")
    assert theirs.wrote(during)
    mine.end(tmp_path, "a")
    assert theirs.wrote(during)
    theirs.trust(tmp_path)
    assert not mine.wrote(during)
    time.sleep(0.02)
    assert not mine.wrote(written(tmp_path, "later"))


def test_a_damaged_file_does_not_erase_what_this_host_knows(tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    runs = CommandRuns(file)
    runs.begin(tmp_path, "a", [])
    during = written(tmp_path)
    assert runs.wrote(during)
    file.write_bytes(b"{")
    assert runs.wrote(during)


def test_a_command_whose_host_died_counts_as_running_for_a_while(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "runs.json"
    CommandRuns(file).begin(tmp_path, "a", [])
    during = written(tmp_path)
    assert CommandRuns(file).wrote(during)
    monkeypatch.setattr(command_runs, "UNENDED_NS", -1)
    assert not CommandRuns(file).wrote(during)


def test_many_runs_are_merged_without_a_gap() -> None:
    known = Known()
    for number in range(3 * MAX_RUNS):
        since = number * 100 + (10_000_000 if number > MAX_RUNS else 0)
        known = known.with_run("/w", Run(str(number), since, since + 50))
    runs = known.runs["/w"]
    assert len(runs) == MAX_RUNS
    for number in range(3 * MAX_RUNS):
        since = number * 100 + (10_000_000 if number > MAX_RUNS else 0)
        assert any(run.since <= since and since + 50 <= run.until for run in runs)
    assert not any(run.since < 9_000_000 < run.until for run in runs)


def test_too_many_written_files_are_reduced_to_their_folder() -> None:
    first = FileHash("/w/AGENTS.md", "a")
    known = Decisions().with_commands([first])
    known = known.with_commands(FileHash(f"/w/p/{number}.md", "b") for number in range(MAX_BY_COMMANDS))
    assert known.by_commands == (FileHash("/w", ""),)
    assert known.with_folder(TrustedFolder("/w", "setup")).by_commands == known.by_commands
    assert known.with_folder(TrustedFolder("/w", "user")).by_commands == ()
