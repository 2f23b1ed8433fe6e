"""Databases for single tests on the server of the tests."""

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator

import psycopg2
import pytest
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


@pytest.fixture
def new_database(django_db_setup: None, django_db_blocker: object) -> Iterator[Callable[[], BaseDatabaseWrapper]]:
    """Makes empty databases; each is also a connection of Django's, whose alias is its name."""
    made: list[BaseDatabaseWrapper] = []
    with (
        contextlib.closing(psycopg2.connect(os.environ["DATABASE_URL"], dbname="postgres")) as server,
        django_db_blocker.unblock(),
    ):
        server.autocommit = True

        def make() -> BaseDatabaseWrapper:
            name = f"migrations_{uuid.uuid4().hex}"
            server.cursor().execute(f"CREATE DATABASE {name} TEMPLATE template0")
            connections.databases[name] = connections["default"].settings_dict | {"NAME": name}
            made.append(connections[name])
            return made[-1]

        yield make
        for connection in made:
            connection.close()
            del connections[connection.alias], connections.databases[connection.alias]
            server.cursor().execute(f"DROP DATABASE {connection.alias}")
