"""``steward scaler``, ``recommender`` and ``adapter``; what they do is imported when it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

SERVICE = "http://127.0.0.1:8080"
Url = Annotated[str, typer.Option(envvar="STEWARD_URL", help="Address of the service.")]
Host = Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0: at all of this host's.")]
Hold = Annotated[
    float, typer.Option(min=0, help="Seconds for which the last decision stands while the service is away.")
]
Fresh = Annotated[
    float, typer.Option(min=0.1, help="Seconds for which an answer of the service isn't asked for again.")
]
File = Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="PEM.")]


def register(cli: typer.Typer) -> None:
    """Add what autoscalers plug into to the ``steward`` command."""
    for command in (scaler, recommender, adapter):
        cli.command()(command)


def scaler(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: one that is free.")] = 9090,
    host: Host = "127.0.0.1",
    url: Url = SERVICE,
    poll: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks for triggers that are pushed.")] = 5.0,
    fresh: Fresh = 1.0,
    hold: Hold = 300.0,
    tls_cert: File = None,
    tls_key: File = None,
    tls_ca: File = None,
) -> None:
    """Serve an external scaler of KEDA (gRPC).

    It asks for as many replicas as the latest decisions do.

    With --tls-cert and --tls-key by TLS; with --tls-ca only to clients that it vouches for. The service's key is
    STEWARD_API_KEY. Exit status: 0 ended, 1 can't start.
    """
    run = _loaded("scaler", "run_scaler")
    raise typer.Exit(run(url, f"{host}:{port}", poll, (fresh, hold), (tls_cert, tls_key, tls_ca)))


def recommender(
    url: Url = SERVICE,
    kubernetes: Annotated[
        str | None, typer.Option(help="Address of `kubectl proxy`. [default: this pod's cluster]")
    ] = None,
    namespace: Annotated[str | None, typer.Option(help="The only one to look at. [default: all]")] = None,
    name: Annotated[str, typer.Option(help="That objects have under spec.recommenders.")] = "steward",
    every: Annotated[float, typer.Option(min=1, help="Seconds between two looks at all objects.")] = 30.0,
    hold: Hold = 300.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
) -> None:
    """Write decisions into VerticalPodAutoscaler objects.

    The latest ones, as the objects' recommender.

    Exit status: 0 ended, 1 can't start, or (with --once) objects can't be listed.
    """
    run = _loaded("recommender", "run_recommender")
    raise typer.Exit(run(url, kubernetes, namespace, name, None if once else every, hold))


def adapter(
    port: Annotated[int, typer.Option(min=0, max=65535)] = 6443,
    host: Host = "127.0.0.1",
    url: Url = SERVICE,
    fresh: Fresh = 5.0,
    hold: Hold = 300.0,
    tls_cert: File = None,
    tls_key: File = None,
    tls_ca: File = None,
) -> None:
    """Serve the latest decisions as metrics.

    /metrics for Prometheus, external.metrics.k8s.io for Kubernetes.

    With --tls-cert and --tls-key by TLS, as Kubernetes asks for; with --tls-ca only to clients that it vouches for.
    Exit status: 0 ended, 1 can't start.
    """
    run = _loaded("adapter", "run_adapter")
    raise typer.Exit(run(url, host, port, (fresh, hold), (tls_cert, tls_key, tls_ca)))


def _loaded(command: str, name: str) -> Any:
    """What a command does; a line of how to get it where it isn't installed."""
    try:
        from . import programs
    except ImportError as error:
        typer.echo(f"steward {command}: {error.name} isn't installed: pip install 'steward-client[scaling]'", err=True)
        raise typer.Exit(1) from error
    return getattr(programs, name)


if __name__ == "__main__":
    cli = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    register(cli)
    cli()
