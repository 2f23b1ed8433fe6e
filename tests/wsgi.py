"""Requests to WSGI applications in this process, on the connection of the test."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.signals import request_finished, request_started
from django.db import close_old_connections


def environ(path: str, query: str = "", body: bytes = b"", **variables: Any) -> dict[str, Any]:
    """The environment of a request."""
    return {
        "REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": query, "HTTP_HOST": "localhost", "SERVER_NAME": "localhost",
        "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "SCRIPT_NAME": "", "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body), "wsgi.errors": io.StringIO(),
    } | variables  # fmt: skip


@contextmanager
def kept_connection() -> Iterator[None]:
    """As in Django's test client: the transaction around a test outlives the requests inside the block."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)
