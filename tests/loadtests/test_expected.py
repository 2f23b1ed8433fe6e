"""The expected responses to lookups, compared with those of the service."""

import json

import pytest

from cdb_rest.lookup.model import LookupQuery
from cdb_rest.rules.moment import END_OF_TIME, Mode, Moment
from cdb_rest.scenarios.definitions import SCENARIOS
from cdb_rest.scenarios.generator import rows_of_type
from cdb_rest.scenarios.layouts import LAYOUTS
from cdb_rest.scenarios.writer import write
from cdb_rest.strategies import implementations
from loadtests.content.expected import Expected
from loadtests.content.moments import drawing

LARGEST = 2**63 - 1
EDGES = [
    Moment(0, 0), Moment(0, 1), Moment(1, 0), Moment(2**31 - 1, 2**31 - 1), Moment(2**31, 0), Moment(5, 2**32 + 7),
    Moment(5, LARGEST), Moment(2**40, 0), END_OF_TIME,
]  # fmt: skip


@pytest.fixture
def expect(tmp_path):
    return lambda *told, **more: Expected(*told, **more, directory=tmp_path)


def rows_of(expected, moment):
    return json.loads(expected.body(moment, False))


def moments(expected, layout):
    """Moments at the edges, at starts and ends, one before them, and at random places."""
    rows = [
        row for name, *_ in expected._types[:3] for row in rows_of_type(SCENARIOS["tiny"], name, layout=layout, seed=7)
    ]
    ends = [moment for row in rows for moment in (row.start, row.end) if moment != END_OF_TIME]
    before = [Moment(moment.major, moment.minor - 1) for moment in ends if moment.minor]
    anywhere = drawing("random", layout, expected.starts.last_major, fixed=Moment(0, 0), seed=7)
    return EDGES + ends + before + [anywhere() for _ in range(50)]


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.django_db
def test_expected_response_equals_response_of_service(expect, settings, layout, mode):
    settings.CDB_IOV_MODE = mode.value
    expected = expect("tiny", layout, 7, mode)
    write(SCENARIOS["tiny"], tag="told", layout=layout, seed=7, progress=lambda count: None)
    rows = 0
    for moment in moments(expected, layout):
        for as_objects in (False, True):
            query = LookupQuery(tag="told", moment=moment, only_valid=False, as_objects=as_objects, mode=mode)
            body = implementations.look_up_by_function(query).encode()
            assert body == expected.body(moment, as_objects)
            assert expected.fault(moment, body, as_objects=as_objects) is None
        rows += len(rows_of(expected, moment))
    assert rows > 100
