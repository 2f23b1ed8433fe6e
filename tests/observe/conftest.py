"""The WSGI application of the service as its servers get it, in this process and on the connection of the test."""

import json
import logging.config
from typing import Any

import pytest
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler

from cdb import env, logs
from cdb_rest.api.base import errors
from cdb_rest.observe.request_context import current_context
from cdb_rest.observe.request_observer import Observed
from cdb_rest.wsgi.pinned import Pinned
from cdb_rest.wsgi.refusals import Overload
from cdb_rest.wsgi.shortcut import Shortcut
from tests import wsgi

PREFIX = "/api/cdb_rest/"
LOOKUP = PREFIX + "payloadiovs/?gtName=tag&majorIOV=1&minorIOV=1"


class Service:
    """Requests to the whole stack."""

    def __init__(self) -> None:
        django = WSGIHandler()
        self.application = Observed(Overload(Pinned(Shortcut(django), refuse=django)), on_error=errors.respond)

    def __call__(self, method: str, url: str, body: bytes = b"", **variables: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of an answer that is taken to its end."""
        path, _, query = url.partition("?")
        said: list[Any] = []
        given = {"CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": "application/json", "REMOTE_ADDR": "192.0.2.7"}
        environ = wsgi.environ(path, query, body, **{"REQUEST_METHOD": method} | given | variables)
        pieces = self.application(environ, lambda status, headers, *_: said.append((status, headers)))
        try:
            content = b"".join(pieces)
        finally:
            getattr(pieces, "close", lambda: None)()
        [(status, headers)] = said
        return int(status[:3]), dict(headers), content


@pytest.fixture
def service() -> Service:
    """The service."""
    with wsgi.kept_connection():
        yield Service()
    current_context.set(None)


class Written:
    """What was written."""

    def __init__(self, path):
        self.path = path

    @property
    def text(self):
        return self.path.read_text() if self.path.exists() else ""

    def __call__(self, **wanted):
        """The records that have these values."""
        found = [json.loads(line) for line in self.text.splitlines()]
        return [record for record in found if all(record.get(name) == value for name, value in wanted.items())]


@pytest.fixture
def records(tmp_path, monkeypatch):
    """Sets records up as the settings ask, other ones than usual, and returns what is written."""

    def set_up(**changes):
        changes = {"CDB_LOG_FILE": str(tmp_path / "log"), "CDB_LOG_FORMAT": "json"} | changes
        values = env.read() | changes
        monkeypatch.setattr(env, "read", lambda: values)
        logging.config.dictConfig(logs.configuration())
        current_context.set(None)
        return Written(tmp_path / "log")

    yield set_up
    monkeypatch.undo()
    logs.configuration()
    logging.config.dictConfig(settings.LOGGING)


@pytest.fixture
def ask(service, records):
    """The service, and its records."""

    def make(**changes):
        return service, records(**changes)

    return make
