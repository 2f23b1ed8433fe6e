"""The header Server-Timing, which says how long each part of a request took."""

import re
import time

import pytest
from django.db import connection

from cdb_rest.lookup import queries

pytestmark = pytest.mark.django_db

FORM = re.compile(
    r'db;dur=(?P<database>[0-9.]+);desc="(?P<queries>\d+) quer(?:y|ies)", render;dur=(?P<rendering>[0-9.]+), '
    r"total;dur=(?P<total>[0-9.]+)"
)


def times(answer):
    found = FORM.fullmatch(answer.headers["Server-Timing"])
    assert found, answer.headers
    return {name: float(value) for name, value in found.groupdict().items()}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "globalTags"),
        ("GET", "gt"),
        ("GET", "globalTag/tag"),
        ("GET", "payloadiovs/?gtName=tag&majorIOV=1&minorIOV=1"),
        ("GET", "payloadiovs/?gtName=missing&majorIOV=1&minorIOV=1"),
        ("GET", "payloadiovs/"),
        ("HEAD", "globalTags"),
        ("PUT", "globalTags"),
        ("GET", "nothing"),
        ("GET", "globalTag/%00"),
        ("GET", "/health/ready"),
        ("POST", "pt"),
    ],
)
def test_every_answer_has_it_errors_too(api, build, method, path):
    build.tag()
    found = times(api(method, path))
    assert found["database"] + found["rendering"] <= found["total"]


def test_statements_are_counted_and_their_time_is_the_databases(api, build, monkeypatch):
    build.tag()
    monkeypatch.setattr(queries, "CALL", "SELECT '1', 'locked', null, '[]', null, null FROM pg_sleep(0.05)")
    found = times(api.get("payloadiovs/?gtName=tag&majorIOV=1&minorIOV=1"))
    assert found["queries"] == 1
    assert 50 <= found["database"] <= found["total"]
    assert times(api.get("/health/live"))["queries"] == 0
    assert connection.execute_wrappers == []


def test_rendering_is_told_apart(api, build, monkeypatch):
    from cdb_rest.api import json

    build.tag()

    def slow_dump(value):
        time.sleep(0.03)
        return b"{}"

    monkeypatch.setattr(json, "dump", slow_dump)
    found = times(api.get("whoami"))
    assert 30 <= found["rendering"] <= found["total"] - found["database"]
