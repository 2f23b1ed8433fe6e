"""Fixtures for all tests."""

import json
import os
import re
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.contenttypes.management import create_contenttypes
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.operations import DatabaseOperations
from django.db.models.signals import post_migrate
from django.test import Client, override_settings
from django.urls import clear_script_prefix

from cdb.env import ROOT
from cdb_rest.access import api_tokens, memory, rules
from cdb_rest.api.base import suggestions
from cdb_rest.api.base.authorization import REFUSED
from cdb_rest.http.security import HEADERS
from cdb_rest.models import PayloadType
from cdb_rest.observe.request_context import current_context
from cdb_rest.rules.moment import OPEN
from cdb_rest.wsgi.refusals import ReadAccess
from tests.builders import Builder, make_statuses
from tests.lookup.compiling import compiled_tags_in

PREFIX = "/api/cdb_rest/"

# What the tests start finds tests/production/sitecustomize.py.
os.environ["PYTHONPATH"] = str(ROOT / "tests" / "production")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=50, help="writes that tests/e2e/test_nginx_cache.py reads after")


@pytest.fixture(scope="session")
def django_db_setup(postgres: None, django_db_setup: None) -> None:
    """Keep Django from making permissions and content types anew after each test that commits: none asks for them."""
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    post_migrate.disconnect(create_contenttypes)


def _delete_all(_operations: Any, _style: Any, tables: list[str], **_options: Any) -> list[str]:
    """Statements that empty tables as Django's do, but for small tables ten times as fast as TRUNCATE, which makes new files."""
    deletions = "; ".join(f'DELETE FROM "{table}"' for table in tables)  # noqa: S608 -- the names are those of the models
    # Without triggers and checks of foreign keys.
    return [f"SET LOCAL session_replication_role = replica; {deletions}"] if tables else []


@pytest.fixture(scope="session", autouse=True)
def _quick_flush() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "sql_flush", _delete_all)
        yield


@pytest.fixture(scope="session", autouse=True)
def _static_files() -> Iterator[None]:
    """Static files are looked for at a request: to list them takes 30 ms for each new client of a test."""
    with override_settings(WHITENOISE_AUTOREFRESH=True):
        yield


@pytest.fixture(autouse=True)
def _left_behind() -> None:
    """No test sees the access rules and the request of the one before."""
    current_context.set(None)
    clear_script_prefix()
    rules.forget()
    api_tokens.forget()
    memory.forget_failures()
    suggestions.forget()


@pytest.fixture(autouse=True)
def _statuses(request: pytest.FixtureRequest, _django_db_marker: None) -> None:
    if request.node.get_closest_marker("django_db"):
        make_statuses()


@pytest.fixture
def compiled_tags(tmp_path: Path) -> Iterator[None]:
    """Lookups use compiled lists (`compiled_tags_in`)."""
    with compiled_tags_in(tmp_path):
        yield


@pytest.fixture
def second_connection(transactional_db: None) -> Iterator[BaseDatabaseWrapper]:
    """Another connection to the database of the tests."""
    other = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        yield other
    finally:
        other.close()


class ServiceClient(Client):
    """Django's test client behind the check of reads, as in the service."""

    def request(self, **request: Any) -> Any:
        if not settings.CDB_ANONYMOUS_READS:
            environ = self._base_environ(**request)
            ReadAccess(lambda *_: [], refuse=lambda *_: [])(environ, lambda *_: None)
            request |= {name: environ[name] for name in (REFUSED,) if name in environ}
        return super().request(**request)


class Api:
    """Requests to the API in this process: every answer is held against the rules that all answers keep."""

    def __init__(self, client: Client | None = None) -> None:
        self._client = client or ServiceClient(raise_request_exception=False)

    def __call__(
        self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str
    ) -> "Answer":
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        content_type = headers.pop("content_type", "application/json")
        url = path if path.startswith("/") else PREFIX + path
        response = self._client.generic(method, url, content, content_type=content_type, headers=headers)
        text = b"".join(response) if response.streaming else response.content
        # A file is the one answer that is no JSON.
        is_file = response.status_code == 200 and "Content-Disposition" in response
        if response.status_code == 304:
            assert not text and not {"Content-Type", "Content-Length"} & set(response.headers)
        elif method != "HEAD":
            assert is_file or response["Content-Type"] == "application/json", (response["Content-Type"], text[:200])
            assert text or is_file, "empty body"
        assert response.has_header("Cache-Control")
        assert HEADERS.items() <= dict(response.items()).items()
        document = json.loads(text) if text and not is_file else None
        return Answer(response.status_code, document, dict(response.items()), text)

    def get(self, path: str, **headers: str) -> "Answer":
        return self("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> "Answer":
        return self("POST", path, body, **headers)

    def put(self, path: str, body: Any = None, **headers: str) -> "Answer":
        return self("PUT", path, body, **headers)

    def delete(self, path: str, **headers: str) -> "Answer":
        return self("DELETE", path, **headers)


class Answer:
    """An answer: status, parsed JSON, headers and the bytes."""

    def __init__(self, status: int, json: Any, headers: dict[str, str], content: bytes) -> None:
        self.status = status
        self.json = json
        self.headers = headers
        self.content = content

    def ok(self) -> Any:
        """The parsed body of a success, which is exactly 200."""
        assert self.status == 200, (self.status, self.json)
        return self.json

    def error(self, status: int, code: str | None = None) -> Any:
        """The parsed body of an error, which is a string `detail` and a `code`."""
        assert self.status == status, (self.status, self.json)
        assert isinstance(self.json["detail"], str) and self.json["detail"]
        assert isinstance(self.json["code"], str)
        if "name" in self.json:
            assert isinstance(self.json["name"], list) and all(isinstance(text, str) for text in self.json["name"])
        if code is not None:
            assert self.json["code"] == code, self.json
        return self.json


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def build() -> Callable[..., Any]:
    """Makes tags, lists and IOVs directly in the tables."""
    return Builder()


@pytest.fixture
def strategies_on(settings: Any) -> None:
    """Serves the routes of the strategies, as the setting would that is read at the start."""
    settings.CDB_STRATEGIES = True
    settings.ROOT_URLCONF = "tests.strategy_urls"


@pytest.fixture
def strategy_indexes(transactional_db: None) -> Iterator[None]:
    """Makes the indexes that strategies want; not inside of a transaction, and nothing else takes them away."""
    call_command("strategy_indexes", "create", stdout=StringIO())
    yield
    call_command("strategy_indexes", "drop", stdout=StringIO())


@pytest.fixture
def payload_types():
    for name in ("Gain", "Noise"):
        PayloadType.objects.create(name=name)


@pytest.fixture
def stored(build: Builder) -> Callable[[str], None]:
    """Fills the list Gain of the tag `tag` with rows such as a1-O b5-6: payload, start, and end or O for open."""
    payload_list = build.list(build.tag(), "Gain")

    def store(text: str) -> None:
        for url, since, until in re.findall(r"(\w)(\d+)-(\w+)", text):
            build.iov(payload_list, (int(since), 0), (OPEN, OPEN) if until == "O" else (int(until), 0), url=url)

    return store
