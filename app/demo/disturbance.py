"""A neighbour that takes CPU: ``python -m app.demo.disturbance`` computes until its standard input ends."""

import sys
import threading


def spin(stop: threading.Event) -> int:
    """Compute until ``stop`` is set; how many rounds that were."""
    rounds = 0
    while not stop.is_set():
        rounds += 1
        sum(range(20_000))
    return rounds


def main() -> None:
    """Take a core until standard input ends."""
    stop = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait, daemon=True).start()
    print('{"ready": true}', flush=True)
    spin(stop)


if __name__ == "__main__":
    main()
