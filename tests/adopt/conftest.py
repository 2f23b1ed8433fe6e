"""A database for nopayloaddb's tables on the server of the tests."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from urllib.parse import urlencode

import psycopg2
import pytest

from tests.adopt.old_database import OldDatabase


@pytest.fixture(scope="session")
def _scratch_database(postgres: None) -> Iterator[psycopg2.extensions.connection]:
    name = f"nopayloaddb_{uuid.uuid4().hex}"
    # Another process may have started the server just now, so that only this database is there.
    with contextlib.closing(psycopg2.connect(os.environ["DATABASE_URL"], dbname="postgres")) as server:
        server.autocommit = True
        server.cursor().execute(f"CREATE DATABASE {name} TEMPLATE template0")
        parameters = server.get_dsn_parameters() | {"dbname": name}
        with contextlib.closing(psycopg2.connect(**parameters)) as connection:
            connection.autocommit = True
            yield connection
        server.cursor().execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def scratch(_scratch_database: psycopg2.extensions.connection) -> psycopg2.extensions.connection:
    """A connection to an empty database, which the tests of a process share."""
    OldDatabase(_scratch_database).wipe()
    return _scratch_database


@pytest.fixture
def url(scratch: psycopg2.extensions.connection) -> str:
    """The URL of the empty database `scratch`."""
    return f"postgresql:///?{urlencode(scratch.get_dsn_parameters())}"
