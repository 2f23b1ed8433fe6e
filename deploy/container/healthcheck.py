"""Whether a program of this container is well: healthcheck.py http PORT|SOCKET PATH, or healthcheck.py tcp PORT."""

import http.client
import socket
import sys

TIMEOUT_SECONDS = 2.5


def is_well(kind: str, address: str, path: str = "/") -> bool:
    """Whether a port of 127.0.0.1, or a Unix socket, takes connections, and with `http` answers 200 at the path."""
    try:
        family = socket.AF_INET if address.isdecimal() else socket.AF_UNIX
        with socket.socket(family) as opened:
            opened.settimeout(TIMEOUT_SECONDS)
            opened.connect(("127.0.0.1", int(address)) if address.isdecimal() else address)
            if kind == "tcp":
                return True
            connection = http.client.HTTPConnection("127.0.0.1")
            connection.sock = opened
            connection.request("GET", path)
            return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False


if __name__ == "__main__":
    sys.exit(not is_well(*sys.argv[1:]))
