"""Limits by control groups of version 2, against a tree of files that stands for the kernel's.

What stands for it: a folder that is made has the files of the controllers that its parent hands down, a folder with no
groups below it can be removed with its files, and a file that isn't there can't be made.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from steward_client.launcher.limits import groups as module
from steward_client.launcher.limits.cpu import Quota
from steward_client.launcher.limits.groups import Group, groups, parents
from steward_client.launcher.limits.memory import InUse, MemoryLimit

FILES = {
    "cpu": {"cpu.max": "max 100000\n"},
    "memory": {"memory.max": "max\n", "memory.high": "max\n", "memory.current": f"{64 << 20}\n"},
}
REAL = Path("/sys/fs/cgroup/unified")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The root of a tree; this process is in ``/user/shell``, which hands nothing down."""
    root, result, removed = tmp_path / "cgroup", Path.mkdir, Path.rmdir

    def mkdir(self: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        result(self, mode, parents, exist_ok)
        if self.is_relative_to(root):
            handed = (self.parent / "cgroup.subtree_control").read_text() if self != root else "cpu memory"
            fill(self, handed)

    def rmdir(self: Path) -> None:
        if self.is_relative_to(root):
            for file in [*self.glob("cgroup.*"), *self.glob("cpu.*"), *self.glob("memory.*")]:
                file.unlink()
        removed(self)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Path, "rmdir", rmdir)
    for folder, handed in ((root, "cpu memory"), (root / "user", "cpu memory"), (root / "user" / "shell", "")):
        folder.mkdir()
        hand_down(folder, handed)
    own = tmp_path / "own"
    own.write_text("0::/user/shell\n")
    monkeypatch.setattr(module, "parents", partial(parents, root=root, own=own))
    monkeypatch.setattr(module, "_try_out", lambda _: None)
    yield root
    shutil.rmtree(root)


def fill(folder: Path, controllers: str) -> None:
    (folder / "cgroup.controllers").write_text(controllers + "\n")
    (folder / "cgroup.subtree_control").write_text("")
    (folder / "cgroup.procs").write_text("")
    for controller in controllers.split():
        for name, text in FILES[controller].items():
            (folder / name).write_text(text)


def hand_down(folder: Path, controllers: str) -> None:
    (folder / "cgroup.subtree_control").write_text(controllers)


def left(tree: Path) -> list[Path]:
    return list(tree.rglob(f"{module.PREFIX}*"))


def test_both_limits_are_of_one_group_below_the_nearest_that_hands_them_down(tree: Path) -> None:
    result = groups(["cpu", "memory"])
    assert result["cpu"] is result["memory"]
    group = result["cpu"]
    assert (group.version, group.parent) == (2, tree / "user")
    quota, memory = Quota(group), MemoryLimit(group)
    assert (quota.how, memory.how) == ("cgroup v2 quota", "cgroup v2 limit")
    for percent, written in ((150.0, "75000 50000"), (20.0, "10000 50000"), (0.5, "1000 50000")):
        assert quota.set(percent) == percent
        assert group.read("cpu.max") == written
    memory.set(128)
    assert (group.read("memory.max"), group.read("memory.high")) == (str(128 << 20), "max")
    with pytest.raises(InUse, match="64 MiB in use"):
        memory.set(32)
    assert (group.read("memory.max"), group.read("memory.high")) == (str(128 << 20), "max")
    group.close()
    assert left(tree) == []


def test_a_group_that_has_both_is_sought_further_up(tree: Path) -> None:
    hand_down(tree / "user", "cpu")
    result = groups(["cpu", "memory"])
    assert {one.parent for one in result.values()} == {tree}
    result["cpu"].close()
    assert left(tree) == []


def test_a_process_is_never_put_into_two_groups_of_version_2(tree: Path) -> None:
    hand_down(tree / "user", "cpu")
    hand_down(tree, "memory")
    result = groups(["cpu", "memory"])
    assert list(result) == ["cpu"]  # a second group would take the command out of the first
    result["cpu"].close()
    assert left(tree) == []


def test_what_is_handed_down_nowhere_is_not_had_and_leaves_nothing(tree: Path) -> None:
    for folder in (tree, tree / "user"):
        hand_down(folder, "")
    assert groups(["cpu", "memory"]) == {}
    assert left(tree) == []


@pytest.mark.skipif(not (REAL / "cgroup.controllers").exists(), reason="no real tree of version 2 beside version 1")
def test_a_real_tree_without_the_controller_is_left_as_it_was(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/\n")
    if "cpu" in (REAL / "cgroup.subtree_control").read_text():
        pytest.skip("it hands cpu down")
    (parent,) = parents("cpu", root=REAL, own=own)
    with pytest.raises(OSError, match=r"cpu.max|Permission|Read-only"):
        Group(parent, "cpu")
    assert not list(REAL.glob(f"{module.PREFIX}*"))
