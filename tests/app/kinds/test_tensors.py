"""Arrays as bytes."""

import numpy as np
import pytest
from safetensors import numpy as safetensors_numpy

from app.kinds.tensors import read_header, write_tensors

ARRAYS = {"b": np.arange(6.0).reshape(2, 3).T, "a": np.array([1], np.int8)}


def test_equal_contents_give_equal_bytes() -> None:
    names = [f"name {i}" for i in range(8)]
    there, back = dict.fromkeys(names, "x"), dict.fromkeys(reversed(names), "x")
    assert write_tensors(ARRAYS, there) == write_tensors(ARRAYS, back)


def test_what_is_written_is_read() -> None:
    data = write_tensors(ARRAYS, {"header": "é"})
    assert read_header(data) == {"header": "é"}
    result = safetensors_numpy.load(data)
    assert {name: array.tolist() for name, array in result.items()} == {n: a.tolist() for n, a in ARRAYS.items()}


@pytest.mark.parametrize("data", [b"\xff" * 8, safetensors_numpy.save(ARRAYS)])
def test_what_has_no_metadata_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"safetensors file"):
        read_header(data)
