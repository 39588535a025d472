from __future__ import annotations

import subprocess
import sys

import psutil

from app.processes import is_gone, node_name, process_name
from tests.servers import wait_until

CHILD = "from app.processes import process_name; print(process_name(), flush=True); input()"
PARENT = (
    "import os, subprocess, sys, time\n"
    "program = f'from app.processes import die_with_parent; import time; "
    "die_with_parent({os.getpid()}); print(1, flush=True); time.sleep(60)'\n"
    "child = subprocess.Popen([sys.executable, '-c', program], stdout=subprocess.PIPE)\n"
    "child.stdout.read(1)\n"
    "print(child.pid, flush=True)\n"
    "time.sleep(60)\n"
)


def test_a_process_is_gone_once_it_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        name = child.stdout.readline().decode().strip()
        assert name.startswith(f"{node_name()}/{child.pid}/")
        assert not is_gone(name)
        child.kill()
        wait_until(lambda: is_gone(name), 10, "the process to be gone")
    assert is_gone(name)


def test_another_process_under_the_same_id_is_not_mistaken_for_it() -> None:
    node, pid, _started = process_name().rsplit("/", 2)
    assert not is_gone(process_name())
    assert is_gone(f"{node}/{pid}/1.00")


def test_nobody_can_tell_about_other_hosts() -> None:
    for name in ("elsewhere:1/1/1.00", "strange", "", "a/b/c"):
        assert not is_gone(name)


def test_a_child_dies_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, 10, "the child to end")
    assert not psutil.pid_exists(child.pid) or child.status() == psutil.STATUS_ZOMBIE


def test_who_expects_another_parent_ends_at_once() -> None:
    program = "from app.processes import die_with_parent; die_with_parent(1); print('still here')"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, b"")


def test_nothing_is_searched_for_garbage_while_modules_load() -> None:
    program = (
        "import gc\n"
        "from app.processes import importing\n"
        "try:\n"
        "    with importing():\n"
        "        import wave\n"
        "        print(gc.isenabled())\n"
        "        import there_is_none_of_this_name\n"
        "except ImportError:\n"
        "    print(gc.isenabled(), gc.get_freeze_count() > 1000)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert ended.stdout.split() == ["False", "True", "True"]
