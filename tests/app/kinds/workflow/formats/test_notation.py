"""Nodes in a line."""

import pytest

from app.kinds.workflow.formats.reading import nodes_written


def test_nodes_are_read_with_and_without_speed_and_price() -> None:
    first, second = nodes_written("4x16@1.5:0.48, 2x8", bandwidth_mbps=125, startup_seconds=60, rented=True)
    assert (first.maximum, first.processors, first.speed, first.price_per_hour) == (4, 16, 1.5, 0.48)
    assert (second.maximum, second.processors, second.speed, second.price_per_hour) == (2, 8, 1, 0)
    assert (first.minimum, first.startup_seconds, first.bandwidth_mbps) == (0, 60, 125)
    assert nodes_written("3x1")[0].minimum == 3


@pytest.mark.parametrize("text", ["", "256", "4x", "x4", "4x16@", "4x16,", "4x16@fast", "-4x16"])
def test_other_forms_are_refused_with_the_right_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"as in 4x16@1\.0:0\.48"):
        nodes_written(text)


@pytest.mark.parametrize(("text", "field"), [("0x16", "maximum"), ("4x0", "processors"), ("4x16@0", "speed")])
def test_numbers_out_of_range_are_refused(text: str, field: str) -> None:
    with pytest.raises(ValueError, match=rf"'{text}': {field}: Input should be greater than .*, not '0'"):
        nodes_written(text)
