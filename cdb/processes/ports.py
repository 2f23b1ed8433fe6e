"""The TCP port that is served."""

import socket
import time

from cdb.env import ConfigurationError

# A server that was killed a moment ago may still hold the port, on a busy machine for some seconds.
PORT_TIMEOUT_SECONDS = 10


def bind(port: int, how: str) -> socket.socket:
    """A socket on 127.0.0.1 and the port, bound and not listening.

    Raises `ConfigurationError` if another program has the port; `how` is the command that is to be given another one.
    """
    deadline = time.monotonic() + PORT_TIMEOUT_SECONDS
    while True:
        bound = socket.socket()
        # As servers do, so that connections of the past that linger in the kernel are no hindrance.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(("127.0.0.1", port))
            return bound
        except OSError as error:
            bound.close()
            if time.monotonic() > deadline:
                raise ConfigurationError(_reason(error, port, how)) from error
        time.sleep(0.2)


def _reason(error: OSError, port: int, how: str) -> str:
    if isinstance(error, PermissionError):
        return f"only root may serve port {port}; choose another one: {how} PORT=8000"
    return f"port {port} is in use; choose another one: {how} PORT={port + 1}"
