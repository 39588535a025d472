"""A Docker daemon of the tests' own: in a folder, on a unix socket, ended by its process id, with nothing left.

Images can't be pulled where there is no registry: the base image is made of Debian's packages by ``mmdebstrap``, and
kept in pytest's cache. ``pip`` has this machine's configuration in it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from tests.engines.required import left_out, require
from tests.servers import free_port, stop, wait_until

BASE = "python:3.11-slim"
PACKAGES = "python3,python3-venv,python3-pip,python-is-python3,ca-certificates"
SLIM = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")]
MANAGED = "./usr/lib/python3.11/EXTERNALLY-MANAGED"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
BASE_SECONDS, START_SECONDS = 400, 60
NEEDED = ("dockerd", "mmdebstrap")


@dataclass
class Dockerd:
    """The daemon. Containers have no network of their own: ``--network host`` where one is needed."""

    folder: Path
    image: str = BASE
    live: bool = True
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def socket(self) -> Path:
        """Its unix socket."""
        return self.folder / "docker.sock"

    @property
    def host(self) -> str:
        """Its address, as ``DOCKER_HOST`` has it."""
        return f"unix://{self.socket}"

    def start(self) -> None:
        """Start it, and wait until it answers; it skips the test, with the last line of its log, where it can't."""
        options = ["--iptables=false", "--ip6tables=false", "--bridge=none", f"--pidfile={self.folder / 'pid'}"]
        options += [f"--data-root={self.folder / 'data'}", f"--exec-root={self.folder / 'exec'}"]
        options += [f"--host={self.host}", f"--host=tcp://127.0.0.1:{self.port}", "--tls=false"]
        options += ["--live-restore"] if self.live else []
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(["dockerd", *options], stdout=log, stderr=log, start_new_session=True)
        wait_until(lambda: self._answers() or self._ended(), START_SECONDS, "dockerd to answer")
        if self._ended():
            left_out(f"dockerd can't be started here: {(self.folder / 'log').read_text().splitlines()[-1][:300]}")

    def _ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(self.socket))
                client.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
                return b" 200 " in client.recv(64)
            except OSError:
                return False

    def stop(self) -> None:
        """End the daemon; with `live` its containers go on."""
        if self.process is not None:
            stop(self.process)

    @contextmanager
    def away(self) -> Iterator[None]:
        """The daemon is ended, and another started at the end."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def docker(self, *arguments: str, seconds: float = 300, check: bool = True) -> str:
        """Run the command ``docker``, and return what it printed."""
        done = subprocess.run(
            ["docker", *arguments],
            env={**os.environ, "DOCKER_HOST": self.host, "DOCKER_BUILDKIT": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert not check or done.returncode == 0, f"docker {' '.join(arguments)}: {done.stdout[-3000:]}"
        return done.stdout.strip()

    def close(self) -> None:
        """Remove all containers, end the daemon, and remove what it has mounted."""
        if not self._ended():
            left = self.docker("ps", "--all", "--quiet", check=False).split()
            if left:
                self.docker("rm", "--force", *left, check=False)
            self.stop()
        for line in reversed(Path("/proc/mounts").read_text().splitlines()):
            if (place := line.split()[1]).startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)


@contextmanager
def dockerd(base: Path) -> Iterator[Dockerd]:
    """A daemon with the base image from the tar file ``base``."""
    folder = Path(tempfile.mkdtemp(prefix="steward-docker-"))
    engine = Dockerd(folder)
    try:
        engine.start()
        engine.docker("import", str(base), BASE)
        yield engine
    finally:
        engine.close()
        subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False)  # in a tenth of rmtree's time


def base_image(cache: Path) -> Path:
    """Tar file of the base image's root file system, made at most once in the folder ``cache``."""
    require(NEEDED)
    if os.geteuid() != 0:
        left_out("Docker's daemon needs root")
    base_image = cache / "base.tar"
    if base_image.exists():
        return base_image
    new = cache / f"new-{os.getpid()}.tar"
    command = ["mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", "--aptopt=APT::Install-Recommends false"]
    command += ["--dpkgopt=force-unsafe-io", *SLIM, "--format=tar", "bookworm", str(new)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BASE_SECONDS, check=False)
        if done.returncode:
            left_out(f"the base image can't be made here: {done.stderr.strip().splitlines()[-1][:300]}")
        _configure(new)
        new.replace(base_image)
    finally:
        new.unlink(missing_ok=True)
    return base_image


def _configure(base: Path) -> None:
    """As in the image of this name on Docker's hub pip may install; it knows this machine's certificates and index."""
    replaced = [f".{CERTIFICATES}", "./etc/pip.conf"]
    for name in (MANAGED, *replaced):
        subprocess.run(["tar", "--delete", "--file", str(base), name], check=False, capture_output=True)
    with tarfile.open(base, "a") as archive:
        if CERTIFICATES.exists():
            archive.add(CERTIFICATES, f".{CERTIFICATES}", filter=_plain)
        archive.addfile(*_file("./etc/pip.conf", _pip_configuration()))


def _plain(tar_info: tarfile.TarInfo) -> tarfile.TarInfo:
    tar_info.uid = tar_info.gid = 0
    tar_info.mode = 0o644
    return tar_info


def _file(name: str, text: str) -> tuple[tarfile.TarInfo, BytesIO]:
    tar_info = tarfile.TarInfo(name)
    tar_info.size, tar_info.mode = len(text.encode()), 0o644
    return tar_info, BytesIO(text.encode())


def _pip_configuration() -> str:
    """This machine's own, of an index and certificates; its folders aren't in the image."""
    pip = ["python3", "-m", "pip", "config", "list"]
    listed = subprocess.run(pip, capture_output=True, text=True, check=False).stdout.splitlines()
    pairs = [line.partition("=")[::2] for line in listed]
    parts = {name.rpartition(".")[2]: value.strip("'\"") for name, value in pairs}
    result = {name: parts[name] for name in ("index-url", "trusted-host", "timeout", "cert") if name in parts}
    return "[global]\n" + "".join(f"{name} = {value}\n" for name, value in result.items())
