"""Fixtures of the tests of the lookup."""

import pytest
from django.db import connection

from tests.builders import Builder
from tests.lookup.compiling import insert, recompile

ROWS = 5000


@pytest.fixture
def large_tag(transactional_db, _statuses):
    """A tag with two lists of 5,000 IOVs, which begin at majors 0, 1, 2...; never analysed."""
    build = Builder()
    tag = build.tag()
    for payload_type in ("Gain", "Noise"):
        payload_list = build.list(tag, payload_type)
        with connection.cursor() as cursor:
            cursor.execute(
                'INSERT INTO "PayloadIOV" (payload_url, major_iov, minor_iov, payload_list_id) '
                "SELECT 'file', major, 0, %s FROM generate_series(0, %s - 1) AS major",
                [payload_list.id, ROWS],
            )
    return tag


@pytest.fixture
def tag(api, compiled_tags):
    """A tag with three compiled lists and a few rows. The value is the number of lists."""
    api.post("gt", {"name": "tag", "status": "unlocked"}).ok()
    for kind in ("Gain", "Noise", "Pedestal"):
        api.post("pt", {"name": kind}).ok()
        for start in range(1, 4):
            insert(api, kind, start)
    return recompile()
