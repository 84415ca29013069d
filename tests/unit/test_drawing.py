"""Cells drawn as an image: the font's letters, our own shapes, colours and cursor. Skipped without Pillow."""

from __future__ import annotations

import pytest

pytest.importorskip("PIL", reason="Pillow comes with `make pictures`")

from tools.pictures.drawing import Look, Pen, cell_size, image_of

LOOK = Look(points=16, ink=(255, 255, 255), paper=(0, 0, 0), margin=4)


def ink_of(sign: str, **more: object) -> set[tuple[int, int, int]]:
    image = image_of([[(sign, Pen(**more))]], 1, LOOK)
    return {image.getpixel((x, y)) for x in range(image.width) for y in range(image.height)}


def test_a_screen_is_as_large_as_its_cells_and_margins() -> None:
    width, height = cell_size(16)
    assert image_of([[], []], 5, LOOK).size == (5 * width + 8, 2 * height + 8)


@pytest.mark.parametrize("sign", ["⣿", "⠒", "▁", "█", "▊", "▏", "─", "│"])
def test_shapes_are_drawn_with_or_without_the_font(sign: str) -> None:
    assert (255, 0, 0) in ink_of(sign, ink=(255, 0, 0))


def test_a_full_block_touches_its_neighbours() -> None:
    image = image_of([[("█", Pen()), ("█", Pen())]], 2, LOOK)
    width, height = cell_size(16)
    assert {image.getpixel((x, 4 + height // 2)) for x in range(4, 4 + 2 * width)} == {(255, 255, 255)}


def test_wide_cells_and_the_cursor_are_where_they_are_in_the_grid() -> None:
    """A wide character covers the empty cell after it."""
    width, height = cell_size(16)
    cells = [("漢", Pen()), ("", Pen()), ("█", Pen())]
    image = image_of([cells], 4, LOOK)
    assert image.getpixel((4 + 2 * width + 1, 4 + height // 2)) == (255, 255, 255)
    barred = image_of([cells], 4, LOOK, cursor=(0, 3), shape="bar")
    assert barred.getpixel((4 + 3 * width, 4 + height // 2)) == (255, 255, 255)
    assert barred.getpixel((4 + 4 * width - 1, 4 + height // 2)) == (0, 0, 0)
    block = image_of([[]], 1, LOOK, cursor=(0, 0), shape="block")
    assert block.size == (width + 8, height + 8)
