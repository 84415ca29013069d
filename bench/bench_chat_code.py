"""The cost of gathered code in a chat: tokens sent, with and without repeating code already above.

A chat is ten questions about one repository. With a file, they are its lines, asked about the newest state; without
one, they are the subjects of ten consecutive commits, each asked about the state before its commit, so that files
change between the questions. Prints for both budgets the tokens (characters / 4) of all blocks, the same summed over
the ten requests (an earlier block is in every later one), the number of places shown, and, for commits, the share of
the changed functions that the model saw in their current form in any block.

    python -m bench.bench_chat_code [--questions FILE] [--chats N] GIT_DIRECTORY…
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from bench.changed_code import changed_functions, share_shown
from bench.commit_questions import CommitQuestion, GitDirectory, questions_of
from bench.moving_checkout import CheckedOut
from codecompanion.model.gathered import Snippet, chars_to_tokens
from codecompanion.model.messages import Message
from codecompanion.retrieval.shown_lines import seen_in
from codecompanion.session.codebase.gathered_message import gathered_message
from codecompanion.session.gather.ask import Ask

BUDGETS = (4_000, 20_000)
QUESTIONS = 10
Way = tuple[int, bool]
"""Budget, and whether code already above is named instead of sent."""


class Chat:
    """The blocks of one chat so far, gathered in one way."""

    def __init__(self, budget: int, names_above: bool) -> None:
        self.budget, self.names_above = budget, names_above
        self.messages = list[Message]()
        self.tokens = list[int]()
        self.places = self.above = 0
        self.cpu_ms = 0.0

    async def ask(self, question: str, project: CheckedOut) -> None:
        """Gather for the next question."""
        begun = time.process_time()
        seen = tuple(self.messages) if self.names_above else ()
        ask = Ask(question=question, root=project.root, budget=self.budget, always=True, seen=seen)
        gathered = await project.gather(ask)
        self.cpu_ms += (time.process_time() - begun) * 1000
        message = gathered_message(gathered, f"m{len(self.tokens)}")
        self.tokens.append(chars_to_tokens(len(gathered.text)))
        self.places += len(gathered.selection.snippets)
        self.above += len(gathered.selection.above)
        if message is not None:
            self.messages.append(message)

    def seen(self, project: CheckedOut) -> list[Snippet]:
        """Return the lines that the model has seen and that are unchanged."""
        lines = seen_in(self.messages).lines
        seen = list[Snippet]()
        for path, known in lines.items():
            now = dict(enumerate((project.read(path) or "").split("\n"), 1))
            seen += [
                Snippet(path=path, start=number, end=number, text=line)
                for number, line in known.items()
                if now.get(number) == line
            ]
        return seen


def chats_of(
    git: GitDirectory, questions: Path | None, count: int
) -> Iterator[list[tuple[str, str, CommitQuestion | None]]]:
    """Yield chats of ten questions."""
    if questions is not None:
        newest = next(iter(questions_of(git, 1))).parent
        asked = [line for line in questions.read_text("utf-8").splitlines() if line.strip()]
        yield [(text, newest, None) for text in asked[:QUESTIONS]]
        return
    commits = questions_of(git, count * QUESTIONS)
    for first in range(0, len(commits) - QUESTIONS + 1, QUESTIONS):
        yield [(one.text, one.parent, one) for one in commits[first : first + QUESTIONS]]


async def measure(path: Path, questions: Path | None, count: int) -> None:
    """Print the figures of a repository."""
    git = GitDirectory(path)
    sums, shares, chats = defaultdict[Way, list[float]](lambda: [0.0] * 6), defaultdict[Way, list[float]](list), 0
    with tempfile.TemporaryDirectory() as folder:
        project = CheckedOut(git, Path(folder))
        for chat in chats_of(git, questions, count):
            chats += 1
            ways = {(budget, names): Chat(budget, names) for budget in BUDGETS for names in (False, True)}
            for text, commit, question in chat:
                await project.move_to(commit)
                functions = changed_functions(project.read, question) if question is not None else []
                for way, one in ways.items():
                    await one.ask(text, project)
                    if functions:
                        shares[way].append(share_shown(one.seen(project), functions))
                await project.index.close()
            for way, one in ways.items():
                in_requests = sum(sum(one.tokens[: n + 1]) for n in range(len(one.tokens)))
                for n, figure in enumerate((sum(one.tokens), in_requests, one.places, one.above, one.cpu_ms)):
                    sums[way][n] += figure
    git.close()
    for (budget, names), (blocks, requests, places, above, cpu, _) in sorted(sums.items()):
        share = shares[budget, names]
        print(
            f"{path.parent.name} {budget:>6,} {'named' if names else 'again'}: blocks {blocks / chats:>8,.0f}"
            f"  in requests {requests / chats:>9,.0f}  places {places / chats:.0f}  above {above / chats:.0f}"
            + (f"  functions {sum(share) / len(share):.3f}" if share else "")
            + f"  cpu {cpu / chats / QUESTIONS:.1f} ms a question",
            flush=True,
        )


def main() -> None:
    """Print four lines for each repository."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=Path, help="a question a line; the first ten are asked")
    parser.add_argument("--chats", type=int, default=3, help="chats of ten commits")
    parser.add_argument("folders", nargs="+", type=Path, metavar="GIT_DIRECTORY")
    given = parser.parse_args()
    for folder in given.folders:
        asyncio.run(measure(folder, given.questions, given.chats))


if __name__ == "__main__":
    main()
