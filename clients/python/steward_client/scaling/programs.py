"""The long-running programs behind the commands."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc
import uvicorn

from steward_client.errors import StewardError, Unreachable
from steward_client.kubernetes import KubernetesApi, KubernetesError
from steward_client.live import http_client
from steward_client.ray_api import RayApi, RayError
from steward_client.retry import Retry

from .amounts import Amounts, Reader, Subject, SubjectError
from .cached import CachedFunction
from .keda.server import Scaler, serving
from .metrics import MetricsAdapter
from .recommender import Recommender
from .replicas import ReplicaSetter, Target

PATIENCE_SECONDS = 2.0
"""Seconds to repeat calls of the service; short, as the autoscaler that asks waits too."""
DONE, FAILED = 0, 1
Seconds = tuple[float, float]
"""Seconds for which responses are fresh, and for which they hold while the service is unreachable."""
Files = tuple[Path | None, Path | None, Path | None]
"""TLS files (PEM): certificate, key, and CA of client certificates; None: not given."""


def run_scaler(url: str, host: str, port: int, poll: float, lifetimes: Seconds, tls: Files) -> int:
    """Serve KEDA's external scaler at ``host`` and ``port`` until Ctrl-C or SIGTERM; returns 0, or 1 if it can't
    start.

    ``poll``: seconds between checks for push triggers. ``lifetimes``: seconds for which a response is used again, and
    for which it is used while the service is unreachable. ``tls``: files of certificate, key and clients' CA, or None.
    """
    _log()
    try:
        decided = CachedFunction(_reader(url).of, *lifetimes)
        _check_tls(tls)
        _check_address(host, port)
        asyncio.run(_serve(Scaler(decided, poll), _joined(host, port), _credentials(tls)))
    except (OSError, ValueError) as error:
        return _print_failure("scaler", error)
    return DONE


async def _serve(scaler: Scaler, address: str, credentials: grpc.ServerCredentials | None) -> None:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with serving(scaler, address, credentials) as port:
        print(f"scaler: listening at {address.rpartition(':')[0]}:{port}", flush=True)
        await ended.wait()


def _credentials(tls: Files) -> grpc.ServerCredentials | None:
    certificate, key, vouching = tls
    if certificate is None or key is None:
        return None
    root = vouching.read_bytes() if vouching else None
    pair = (key.read_bytes(), certificate.read_bytes())
    return grpc.ssl_server_credentials([pair], root_certificates=root, require_client_auth=root is not None)


def run_recommender(
    url: str, kubernetes: str | None, namespace: str | None, name: str, every: float | None, hold: float
) -> int:
    """Run the recommender until Ctrl-C or SIGTERM; returns exit status 0, or 1 if the cluster can't be used.

    ``kubernetes``: address of ``kubectl proxy``, None: this pod's cluster. ``namespace`` None: all. ``every``: seconds
    between passes, None: one pass only. ``hold``: seconds for which the last decision holds.
    """
    _log()
    try:
        with _stoppable():
            api = KubernetesApi.connect(kubernetes)
            recommender = Recommender(api, CachedFunction(_reader(url).of, 1.0, hold), namespace, name)
            _repeat(recommender.look, every, (KubernetesError,))
    except (KubernetesError, ValueError) as error:
        return _print_failure("recommender", error)
    return DONE


def run_replicas(
    url: str, ray: str, named: Mapping[str, str], targets: Sequence[str], every: float | None, hold: float
) -> int:
    """Set replicas of Ray Serve until Ctrl-C or SIGTERM; returns exit status 0, or 1 if Ray or the service can't be
    used.

    ``ray``: address of the dashboard, empty: the default's. ``named``: the subject. ``every``: seconds between looks,
    None: one only. ``hold``: seconds for which the last decision holds.
    """
    _log()
    try:
        with _stoppable():
            subject = Subject.of({name: value for name, value in named.items() if value}, "--workload, --run")
            decided = CachedFunction(_reader(url).of, min(1.0, every or 1.0), hold)
            setter = ReplicaSetter(RayApi(ray), decided, subject, [Target.parse(one) for one in targets])
            _repeat(setter.look, every, (RayError, SubjectError, StewardError, Unreachable))
    except (RayError, StewardError, Unreachable, ValueError) as error:  # a subject's error is one of value
        return _print_failure("replicas", error)
    return DONE


def _repeat(look: Callable[[], object], every: float | None, passing: tuple[type[Exception], ...]) -> None:
    """Call ``look`` again and again, with ``every`` seconds between, and log its errors ``passing``; None: call it
    once, and raise them."""
    while True:
        try:
            look()
        except passing as error:
            if every is None:
                raise
            logging.getLogger("steward_client").warning("%s", error)
        if every is None:
            return
        time.sleep(every)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Context manager: Ctrl-C and SIGTERM end the body, without an error. As process 1 of a container, a program that
    doesn't handle SIGTERM would not get it."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


class _Server(uvicorn.Server):
    """Uvicorn server that prints its address."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening and print the address, as the system may have chosen the port."""
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"adapter: listening at {_joined(self.config.host, port)}", flush=True)


def run_adapter(url: str, host: str, port: int, lifetimes: Seconds, tls: Files) -> int:
    """Serve the metrics adapter at ``host`` and ``port`` until Ctrl-C or SIGTERM; returns 0, or 1 if it can't start.

    ``lifetimes``: seconds for which a response is used again, and for which it is used while the service is
    unreachable. ``tls``: files of certificate, key and clients' CA, or None.
    """
    _log()
    try:
        reader = _reader(url)
        _check_tls(tls)
        _check_address(host, port)
    except (OSError, ValueError) as error:
        return _print_failure("adapter", error)
    by_workload: CachedFunction[str, Mapping[str, Amounts]] = CachedFunction(lambda _: reader.by_workload(), *lifetimes)
    certificate, key, vouching = tls
    config = uvicorn.Config(
        MetricsAdapter(lambda: by_workload("")).app(),
        host=host.strip("[]"),
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        ssl_ca_certs=str(vouching) if vouching else None,
        ssl_cert_reqs=ssl.CERT_REQUIRED if vouching else ssl.CERT_NONE,
    )
    with _stoppable():
        _Server(config).run()
    return DONE


def _check_tls(tls: Files) -> None:
    """Check that TLS files can be used together.

    Raises:
        ValueError: one is missing, or can't be used; the message names it.
    """
    certificate, key, vouching = tls
    if certificate is None or key is None:
        if certificate or key or vouching:
            raise ValueError("TLS needs --tls-cert and --tls-key together; --tls-ca may be added")
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # an SSLError is an OSError
        raise ValueError(f"--tls-cert {certificate}, --tls-key {key}: no certificate and its key: {error}") from error
    try:
        if vouching:
            context.load_verify_locations(vouching)
    except OSError as error:
        raise ValueError(f"--tls-ca {vouching}: no certificate: {error}") from error


def _check_address(host: str, port: int) -> None:
    """Check that an address can be listened at.

    Raises:
        OSError: the port is in use or forbidden, or this machine has no such address.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        socket.create_server(address[:2], family=family).close()
    except OSError as error:
        text = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise OSError(f"--host, --port: {_joined(host, port)}: {text}") from error


def _joined(host: str, port: int) -> str:
    """Host and port as one text, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def _reader(url: str) -> Reader:
    """A reader of the service at an address.

    Raises:
        ValueError: ``url`` is no address, or the key in the environment can't be sent.
    """
    if not re.match("https?://.", url):
        raise ValueError(f"--url: {url!r} is not an address; accepted is such as http://steward:8080")
    key = os.environ.get("STEWARD_API_KEY", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("STEWARD_API_KEY: contains characters that no key has")
    return Reader(http_client(url), Retry(patience_seconds=PATIENCE_SECONDS))


def _log() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(message)s")


def _print_failure(command: str, error: object) -> int:
    print(f"steward {command}: {error}", file=sys.stderr)
    return FAILED
