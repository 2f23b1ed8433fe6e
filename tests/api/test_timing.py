"""The header Server-Timing, which says how long each part of a request took."""

import re

import pytest

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
