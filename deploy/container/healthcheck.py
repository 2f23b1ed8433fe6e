"""Whether a program of this container is well, as an exit code: healthcheck.py http PORT PATH, or healthcheck.py tcp PORT."""

import http.client
import socket
import sys

TIMEOUT_SECONDS = 2.5


def is_well(kind: str, port: int, path: str = "/") -> bool:
    """Whether a port of 127.0.0.1 takes connections, and with `http` answers 200 at the path."""
    try:
        if kind == "tcp":
            socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS).close()
            return True
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False


if __name__ == "__main__":
    sys.exit(not is_well(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
