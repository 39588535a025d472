from __future__ import annotations

import socket

import pytest

from app.cli.server.serve import bind
from app.settings import Settings
from app.startup import StartupError


def test_a_free_port_is_bound_and_does_not_listen_yet() -> None:
    (listener,) = bind(Settings(port=0))
    with listener, socket.socket() as client:
        host, port = listener.getsockname()
        assert host == "127.0.0.1"
        assert client.connect_ex((host, port)) != 0
        listener.listen()
        client.connect((host, port))


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartupError, match=f"STEWARD_PORT={port}: address already in use on 127.0.0.1; .*--port"):
            bind(Settings(port=port))


def test_localhost_is_every_address_of_that_name() -> None:
    listeners = bind(Settings(host="localhost", port=0))
    assert {listener.getsockname()[0] for listener in listeners} <= {"127.0.0.1", "::1"}
    assert listeners
    for listener in listeners:
        listener.close()
