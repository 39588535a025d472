from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from app.cli.server import data
from app.startup import StartupError

HOLDER = (
    "import sys, time; from pathlib import Path; from app.cli.server.data import exclusive\n"
    "with exclusive(Path(sys.argv[1])):\n"
    "    print('held', flush=True); time.sleep(600)\n"
)


def test_a_folder_is_held_by_one_process_which_others_are_told(tmp_path: Path) -> None:
    assert data.holder(tmp_path) is None
    with data.exclusive(tmp_path):
        assert data.holder(tmp_path) == str(os.getpid())
        text = f"process {os.getpid()} serves it already"
        messages = list[str]()
        with pytest.raises(StartupError, match=text), data.exclusive(tmp_path, messages.append, 0.0):
            pass
        assert messages == [f"waits up to 0 s for process {os.getpid()}, which serves {tmp_path}, to end"]
    assert data.holder(tmp_path) is None


def test_a_lock_goes_with_its_process_however_that_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert data.holder(tmp_path) == str(process.pid)
        threading.Timer(0.5, process.kill).start()  # one that is ending is waited for
        with data.exclusive(tmp_path):
            assert data.holder(tmp_path) == str(os.getpid())
    with data.exclusive(tmp_path):
        assert data.holder(tmp_path) == str(os.getpid())


def test_a_folder_whose_files_cannot_be_locked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "No locks available")))
    with pytest.raises(StartupError, match=r"can't be locked \(No locks available\)"), data.exclusive(tmp_path):
        pass
    assert data.holder(tmp_path) is None
