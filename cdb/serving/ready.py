"""The message of `make serve` when it is ready: python -m cdb.serving.ready PORT, with the message as standard input.

`manage.py serve` starts it before supervisord takes the place of that process, so that its output goes to the same terminal.
"""

import http.client
import sys
import time

TIMEOUT_SECONDS = 120


def is_ready(port: int) -> bool:
    """Whether /health/ready at a port of 127.0.0.1 returns 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health/ready")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    port, message = int(sys.argv[1]), sys.stdin.read()
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not is_ready(port) and time.monotonic() < deadline:
        time.sleep(0.1)
    if time.monotonic() >= deadline:
        message = f"Not ready after {TIMEOUT_SECONDS} s; see the log files in the directory serve of CDB_DATA_DIR."
    sys.stdout.write(f"{message}\n")
