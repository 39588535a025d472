"""A process that uses CPU while it is switched on: the disturbance of the demo.

``python -m app.demo.disturbance`` answers each line ``{"spin": true}`` or ``{"spin": false}`` of its standard input
with the same line; it exits at the end of the input.
"""

import hashlib
import json
import sys
import threading

THREADS = 1  # the training has one too, so each gets about half of what the limit allows


class Neighbour:
    """Threads that compute hashes while switched on."""

    def __init__(self) -> None:
        self._on = threading.Event()
        for number in range(THREADS):
            threading.Thread(target=self._compute, daemon=True, name=f"neighbour-{number}").start()

    def switch(self, *, on: bool) -> None:
        """Start or stop computing."""
        if on:
            self._on.set()
        else:
            self._on.clear()

    def _compute(self) -> None:
        data = bytes(1_000_000)
        while True:
            self._on.wait()
            hashlib.sha256(data)  # lets the other threads run meanwhile


def main() -> None:
    """Print a ready message, then follow the requests on standard input until it ends."""
    neighbour = Neighbour()
    print('{"ready": true}', flush=True)
    for line in sys.stdin:
        wanted = bool(json.loads(line)["spin"])
        neighbour.switch(on=wanted)
        print(json.dumps({"spin": wanted}), flush=True)


if __name__ == "__main__":
    main()
