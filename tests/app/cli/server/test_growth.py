"""What somebody else writes is told as it grows."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from app.cli.server.data import growing
from tests.servers import wait_until


@pytest.mark.parametrize(("expected", "text"), [(200, "backup  50%  0.0 MB"), (None, "backup   0%  0.0 MB")])
def test_a_file_that_grows_is_a_share_of_what_is_expected(tmp_path: Path, expected: int | None, text: str) -> None:
    file, output = tmp_path / "there", io.StringIO()
    with growing("backup", [file], expected, Console(file=output), look=0.01):
        wait_until(lambda: "backup   0%" in output.getvalue(), what="a look at what is not there yet")
        file.write_bytes(bytes(100))
        wait_until(lambda: text in output.getvalue(), what="a look at half of it")
