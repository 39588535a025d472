"""The long-running programs behind the commands."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import grpc
import uvicorn

from steward_client.errors import StewardError
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


def run_scaler(url: str, address: str, poll: float, lifetimes: Seconds, tls: Files) -> int:
    """Serve KEDA's external scaler at ``address`` (HOST:PORT) until SIGTERM; returns 0, or 1 if it can't start.

    ``poll``: seconds between checks for push triggers. ``lifetimes``: seconds for which a response is used again, and
    for which it is used while the service is unreachable. ``tls``: files of certificate, key and clients' CA, or None.
    """
    _log()
    decided = CachedFunction(_reader(url).of, *lifetimes)
    try:
        asyncio.run(_serve(Scaler(decided, poll), address, _credentials(tls)))
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
        if certificate or key or vouching:
            raise ValueError("TLS needs --tls-cert and --tls-key together; --tls-ca may be added")
        return None
    root = vouching.read_bytes() if vouching else None
    pair = (key.read_bytes(), certificate.read_bytes())
    return grpc.ssl_server_credentials([pair], root_certificates=root, require_client_auth=root is not None)


def run_recommender(
    url: str, kubernetes: str | None, namespace: str | None, name: str, every: float | None, hold: float
) -> int:
    """Run the recommender until Ctrl-C; returns exit status 0, or 1 if the cluster can't be used.

    ``kubernetes``: address of ``kubectl proxy``, None: this pod's cluster. ``namespace`` None: all. ``every``: seconds
    between passes, None: one pass only. ``hold``: seconds for which the last decision holds.
    """
    _log()
    try:
        api = KubernetesApi.connect(kubernetes)
        recommender = Recommender(api, CachedFunction(_reader(url).of, 1.0, hold), namespace, name)
        while True:
            try:
                recommender.look()
            except KubernetesError as error:
                if every is None:
                    raise
                logging.getLogger("steward_client").warning("%s", error)
            if every is None:
                return DONE
            time.sleep(every)
    except KeyboardInterrupt:
        return DONE
    except KubernetesError as error:
        return _print_failure("recommender", error)


def run_replicas(
    url: str, ray: str, named: Mapping[str, str], targets: Sequence[str], every: float | None, hold: float
) -> int:
    """Set replicas of Ray Serve until Ctrl-C; returns exit status 0, or 1 if Ray or the service can't be used.

    ``ray``: address of the dashboard, empty: the default's. ``named``: the subject. ``every``: seconds between looks,
    None: one only. ``hold``: seconds for which the last decision holds.
    """
    _log()
    try:
        subject = Subject.of({name: value for name, value in named.items() if value}, "--workload, --run")
        decided = CachedFunction(_reader(url).of, min(1.0, every or 1.0), hold)
        setter = ReplicaSetter(RayApi(ray), decided, subject, [Target.parse(one) for one in targets])
        while True:
            try:
                setter.look()
            except (RayError, SubjectError, StewardError) as error:
                if every is None:
                    raise
                logging.getLogger("steward_client").warning("%s", error)
            if every is None:
                return DONE
            time.sleep(every)
    except KeyboardInterrupt:
        return DONE
    except (RayError, StewardError, ValueError) as error:  # a subject's error is one of value
        return _print_failure("replicas", error)


def run_adapter(url: str, host: str, port: int, lifetimes: Seconds, tls: Files) -> int:
    """Serve the metrics adapter at ``host`` and ``port`` until SIGTERM; returns 0, or 1 if ``tls`` is incomplete.

    ``lifetimes``: seconds for which a response is used again, and for which it is used while the service is
    unreachable. ``tls``: files of certificate, key and clients' CA, or None. An address that can't be used ends the
    process with an error status (SystemExit).
    """
    certificate, key, vouching = tls
    if bool(certificate) != bool(key) or (vouching and not key):
        return _print_failure("adapter", "TLS needs --tls-cert and --tls-key together; --tls-ca may be added")
    _log()
    reader = _reader(url)
    by_workload: CachedFunction[str, Mapping[str, Amounts]] = CachedFunction(lambda _: reader.by_workload(), *lifetimes)
    app = MetricsAdapter(lambda: by_workload("")).app()
    served = {"ssl_certfile": certificate, "ssl_keyfile": key, "ssl_ca_certs": vouching} if key else {}
    require = {"ssl_cert_reqs": 2} if vouching else {}  # ssl.CERT_REQUIRED
    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False, **served, **require)  # type: ignore[arg-type]
    return DONE


def _reader(url: str) -> Reader:
    return Reader(http_client(url), Retry(patience_seconds=PATIENCE_SECONDS))


def _log() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(message)s")


def _print_failure(command: str, error: object) -> int:
    print(f"steward {command}: {error}", file=sys.stderr)
    return FAILED
