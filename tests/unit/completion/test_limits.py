"""Limits of the prompt and of the suggestion."""

from __future__ import annotations

from codecompanion.completion.families import family_of, stops_of
from codecompanion.completion.project_knowledge import ProjectView, choose
from codecompanion.completion.usable_reply import Place, usable
from codecompanion.model.code import Definition

QWEN = family_of("qwen")


def test_sixty_lines_are_shown_at_most() -> None:
    reply = "\n".join(f"line_{number}()" for number in range(100))
    found = usable(reply, Place("", ""), QWEN, stops_of(QWEN), multi_line=True, is_cut=False)
    assert found.split("\n") == [f"line_{number}()" for number in range(60)]


def test_signatures_take_at_most_half_of_the_room() -> None:
    """The other half is for similar code, which helps as often."""
    names = [f"name_{number}" for number in range(40)]
    definitions = tuple(
        (f"{name}.py", Definition(name, "function", 1, 2, 1, f"def {name}({'x' * 50})")) for name in names
    )
    found = choose(ProjectView((), definitions), dict.fromkeys(names, 1.0), "", 1000)
    taken = sum(file.cost(0) for file in found)
    assert 400 < taken <= 500
