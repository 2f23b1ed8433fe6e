"""The supervisor of nginx in a container: python -m cdb.serving.nginx_keeper DIRECTORY ADDRESS

It starts nginx with the configuration in DIRECTORY, on ADDRESS (PORT or HOST:PORT), and restarts it when a
worker has crashed. Signals have the same meaning as for nginx: SIGQUIT stops it after the requests in
progress have finished, SIGTERM and SIGINT stop it immediately, SIGHUP reloads the configuration.
"""

import signal
import socket
import sys
import time
from pathlib import Path
from types import FrameType

from cdb.serving.nginx import Nginx

CHECK_INTERVAL_SECONDS = 0.2


def main(directory: Path, address: str) -> int:
    """Run nginx until a signal stops it or it ends by itself. Returns its exit code."""
    nginx = Nginx(_bind(address), directory)
    stops: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGHUP:
            stops.append(number)
        nginx.send(signal.Signals(number))

    for number in (signal.SIGQUIT, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    nginx.start()
    # A signal that arrived during the start had no process yet.
    for stop in tuple(stops):
        nginx.send(signal.Signals(stop))
    while nginx.running():
        if not stops and nginx.started.poll() is None and nginx.restart_after_crash():
            sys.stderr.write("cdb: a worker of nginx crashed; nginx was restarted\n")
        time.sleep(CHECK_INTERVAL_SECONDS)
    return nginx.started.returncode


def _bind(address: str) -> socket.socket:
    """A socket that is bound to the address in nginx's syntax: a port without host stands for all IPv4 addresses."""
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        # nginx's default.
        bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    bound.bind((host.strip("[]"), int(port)))
    return bound


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
