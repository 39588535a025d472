"""Builds the wheels of the service and of its Python client: ``python -m tests.wheels [FOLDER]``, by default ``dist``.

The same sources give the same bytes, wherever and whenever they are built: they are copied with fixed modes to a folder
without files of earlier builds, the build tool is that of ``constraints.txt``, and files in the wheels are dated by
``SOURCE_DATE_EPOCH`` (seconds; by default the time of the last commit).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECTS = (".", "clients/python")


def build(folder: Path, root: Path = ROOT) -> list[Path]:
    """Build the wheels of a checkout's files, committed or not, but for those that git ignores, into a folder.

    Raises:
        subprocess.CalledProcessError: git or the build failed; its output stands on standard error.
    """
    uv = Path(sys.executable).with_name("uv")
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary)
        listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        for name in filter(None, listed.split("\0")):
            if (root / name).is_file():  # one that was deleted is listed until the next commit
                copy = source / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes((root / name).read_bytes())  # of a link, what it leads to
                copy.chmod(0o644)
        environment = {"SOURCE_DATE_EPOCH": _git(root, "log", "-1", "--format=%ct").strip(), **os.environ}
        if "PIP_FIND_LINKS" in environment:  # uv reads its own variable
            environment.setdefault("UV_FIND_LINKS", environment["PIP_FIND_LINKS"])
        result = source / "made"
        for project in PROJECTS:
            options = [
                "--quiet",
                "--wheel",
                "--build-constraints",
                f"{source}/constraints.txt",
                "--out-dir",
                str(result),
            ]
            subprocess.run([uv, "build", *options, source / project], check=True, env=environment, umask=0o022)
        folder.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(wheel, folder)) for wheel in sorted(result.glob("*.whl"))]


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", root, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    for path in build(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")):
        print(path)
