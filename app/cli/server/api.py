"""The API of `steward serve`: a server on sockets that are bound already, and the worker beside it."""

from __future__ import annotations

import signal
import socket
from types import FrameType

import uvicorn

from app.cli.server.listen import refusal
from app.cli.server.supervisor import WorkerChild
from app.database.engine import Database
from app.jobs import lease
from app.processes import importing, is_gone
from app.settings import Settings
from app.startup import StartupError

GRACEFUL_SECONDS = 5


class Server(uvicorn.Server):
    """Uvicorn that says where it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then tell the address (the port may have been chosen by the system)."""
        await super().startup(sockets)
        for server in self.servers:
            for listener in server.sockets:
                host, port = listener.getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                print(f"Steward listens on {'https' if self.config.is_ssl else 'http'}://{shown}:{port}", flush=True)


def run(settings: Settings, sockets: list[socket.socket]) -> None:
    """Serve until SIGTERM or Ctrl-C. Blocks.

    Raises:
        StartupError: the sockets can't listen.
    """
    worker = WorkerChild(settings)
    database = Database(settings.database_url, settings)
    try:
        if settings.workers:
            worker.start()  # it starts up while this process imports the API
        server = Server(configuration(settings, database))
        _stop_on_signals(server)
        lease.sweep(database, settings, is_gone)
        _listen(settings, sockets)
        server.run(sockets)
    finally:
        if settings.workers:
            worker.stop()
        database.dispose()


def _listen(settings: Settings, sockets: list[socket.socket]) -> None:
    """From here on connections are taken; another process may have been faster since the ports were bound."""
    for one in sockets:
        try:
            one.listen()
        except OSError as error:
            raise StartupError(refusal(settings.host, settings.port, error)) from error


def _stop_on_signals(server: Server) -> None:
    """A signal before the server runs stops it too; uvicorn raises it once more at its end, which changes nothing."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


def configuration(settings: Settings, database: Database) -> uvicorn.Config:
    """How the API is served, by the server of ``run`` or another."""
    with importing():
        from app.http.protocol import protocol
        from app.main import create_app, tune_garbage_collection

        application = create_app(settings, database).gateway
    tune_garbage_collection()
    return uvicorn.Config(
        application,
        host=settings.host,
        port=settings.port,
        http=protocol(settings.header_timeout_seconds),
        ws="none",
        access_log=False,
        log_config=None,  # its lines go where ours do
        log_level="warning",
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )
