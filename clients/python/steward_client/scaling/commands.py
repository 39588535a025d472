"""``steward scaler``, ``recommender``, ``adapter`` and ``replicas``; what they do is imported when it is asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

INSTALL = 'pip install "$(echo dist/steward_client-*.whl)[scaling]" after `make wheels` in a checkout'
try:
    import typer
except ImportError as error:  # the client without its extra
    if __name__ != "__main__":
        raise
    sys.exit(f"{error.name} isn't installed: {INSTALL}")

SERVICE = "http://127.0.0.1:8080"
Url = Annotated[
    str, typer.Option(envvar="STEWARD_URL", help="Address of the service; its key is read from STEWARD_API_KEY.")
]
Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all interfaces.")]
Hold = Annotated[
    float, typer.Option(min=0, help="Seconds to repeat the last decision while the service is unreachable.")
]
Fresh = Annotated[float, typer.Option(min=0.1, help="Seconds for which the service's responses are cached.")]
File = Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="PEM file.")]


def register(cli: typer.Typer) -> None:
    """Add the commands ``scaler``, ``recommender``, ``adapter`` and ``replicas`` to the ``steward`` command."""
    for command in (scaler, recommender, adapter, replicas):
        cli.command()(command)


def scaler(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 9090,
    host: Host = "127.0.0.1",
    url: Url = SERVICE,
    poll: Annotated[float, typer.Option(min=0.1, help="Seconds between checks for push triggers.")] = 5.0,
    fresh: Fresh = 1.0,
    hold: Hold = 300.0,
    tls_cert: File = None,
    tls_key: File = None,
    tls_ca: File = None,
) -> None:
    """Serve an external scaler for KEDA (gRPC).

    Requests as many replicas as the latest decisions.

    --tls-cert and --tls-key enable TLS; --tls-ca requires client certificates signed by that CA.

    Exit status: 0 stopped, 1 can't start.
    """
    run = _load_function("scaler", "run_scaler")
    raise typer.Exit(run(url, host, port, poll, (fresh, hold), (tls_cert, tls_key, tls_ca)))


def recommender(
    url: Url = SERVICE,
    kubernetes: Annotated[
        str | None, typer.Option(help="Address of `kubectl proxy`. [default: this pod's cluster]")
    ] = None,
    namespace: Annotated[str | None, typer.Option(help="Only this namespace. [default: all]")] = None,
    name: Annotated[str, typer.Option(help="Recommender name in spec.recommenders.")] = "steward",
    every: Annotated[float, typer.Option(min=1, help="Seconds between passes over all objects.")] = 30.0,
    hold: Hold = 300.0,
    once: Annotated[bool, typer.Option("--once", help="Run once and exit.")] = False,
) -> None:
    """Write decisions into VerticalPodAutoscaler objects.

    Acts as the objects' recommender, with the latest decisions.

    Exit status: 0 stopped, 1 can't start, or (with --once) objects can't be listed.
    """
    run = _load_function("recommender", "run_recommender")
    raise typer.Exit(run(url, kubernetes, namespace, name, None if once else every, hold))


def adapter(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 6443,
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

    --tls-cert and --tls-key enable TLS, which Kubernetes requires; --tls-ca requires client certificates signed by
    that CA.

    Exit status: 0 stopped, 1 can't start.
    """
    run = _load_function("adapter", "run_adapter")
    raise typer.Exit(run(url, host, port, (fresh, hold), (tls_cert, tls_key, tls_ca)))


def replicas(
    targets: Annotated[
        list[str], typer.Argument(help="APPLICATION/DEPLOYMENT=RESOURCE, or …=RESOURCE/SIZE with a replica's amount.")
    ],
    url: Url = SERVICE,
    workload: Annotated[str, typer.Option(help="Set the sum of its live runs' decisions.")] = "",
    run: Annotated[str, typer.Option(help="Set this run's decisions.")] = "",
    ray: Annotated[str, typer.Option(help="Ray's dashboard. [default: RAY_API_SERVER_ADDRESS, or port 8265]")] = "",
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between looks at Ray Serve.")] = 5.0,
    hold: Hold = 300.0,
    once: Annotated[bool, typer.Option("--once", help="Run once and exit.")] = False,
) -> None:
    """Set replicas of Ray Serve to the latest decisions.

    Through its API for outside scalers.

    Exit status: 0 stopped, 1 can't start, or (with --once) Ray or the service can't be used.
    """
    set_ = _load_function("replicas", "run_replicas")
    raise typer.Exit(set_(url, ray, {"workload": workload, "run": run}, targets, None if once else every, hold))


def _load_function(command: str, name: str) -> Any:
    """A function of the module ``programs``; if its packages aren't installed, exits with status 1 and a hint."""
    try:
        from . import programs
    except ImportError as error:
        typer.echo(f"steward {command}: {error.name} isn't installed: {INSTALL}", err=True)
        raise typer.Exit(1) from error
    return getattr(programs, name)


if __name__ == "__main__":
    cli = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    register(cli)
    cli()
