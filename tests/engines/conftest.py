"""Fixtures of real engines. Their tests are slow, and none runs unless asked for (``.ci/engines``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engines.dockerd import Dockerd, base_image, dockerd
from tests.servers import StewardServer, start_steward

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All tests here are of engines; they are left out unless they are asked for by that name."""
    here = [item for item in items if item.path.is_relative_to(FOLDER)]
    for item in here:
        item.add_marker(pytest.mark.slow)
        item.add_marker(pytest.mark.engines)
    if "engines" not in str(config.getoption("markexpr")):
        items[:] = [item for item in items if item not in here]
        config.hook.pytest_deselected(items=here)


@pytest.fixture(scope="session")
def docker_base(pytestconfig: pytest.Config) -> Path:
    """Tar file of an image's root file system with Python, from the cache or made now; skips where it can't be."""
    assert pytestconfig.cache is not None
    return base_image(pytestconfig.cache.mkdir("engines"))


@pytest.fixture(scope="session")
def docker(docker_base: Path) -> Iterator[Dockerd]:
    """A real Docker daemon with that image."""
    with dockerd(docker_base) as engine:
        yield engine


@pytest.fixture(scope="module")
def steward_module() -> Iterator[Callable[..., StewardServer]]:
    """Starts real `steward serve` processes, as `start_steward` does; ends them after the module's tests."""
    started: list[StewardServer] = []

    def start(data: Path, *arguments: str, **settings: str) -> StewardServer:
        started.append(start_steward(data, *arguments, **settings))
        return started[-1]

    yield start
    for server in started:
        server.stop()
