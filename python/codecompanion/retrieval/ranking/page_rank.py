"""Personalised PageRank over the usage graph: finds files related to those that match a question.

The graph is small: it contains the files found by other signals and their neighbours, not the whole project.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

_STEPS = 4
_FOLLOW = 0.5


def spread(seeds: Mapping[str, float], edges: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return how much of the seeds' weight reaches each file along the edges, not counting its own initial weight.

    `seeds`: path → weight, any sum. `edges`: path → neighbour → strength. In each of a few steps, every file passes on
    half of its weight, in proportion to the strengths.
    """
    total = sum(seeds.values())
    if total <= 0:
        return {}
    moving = {path: weight / total for path, weight in seeds.items()}
    arrived = defaultdict[str, float](float)
    for _ in range(_STEPS):
        following = defaultdict[str, float](float)
        for path, weight in moving.items():
            neighbours = edges.get(path)
            if not neighbours:
                continue
            out = sum(neighbours.values())
            for other, strength in neighbours.items():
                following[other] += _FOLLOW * weight * strength / out
        if not following:
            break
        for path, weight in following.items():
            arrived[path] += weight
        moving = following
    return dict(arrived)


def reversed_edges(edges: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return the edges in the opposite direction."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for path, neighbours in edges.items():
        for other, strength in neighbours.items():
            found[other][path] = strength
    return dict(found)
