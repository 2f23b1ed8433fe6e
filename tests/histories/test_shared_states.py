"""A request may use the state that another one has read, but never gets a response older than its arrival."""

import re
from time import monotonic
from unittest.mock import patch

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdb_rest.lookup import shared_states
from cdb_rest.lookup.shared_states import SharedStates
from cdb_rest.models import PayloadType
from cdb_rest.observe.request_context import arrived
from tests.histories.test_etags import STEPS, TAGS, TYPES, clear, paths, play
from tests.lookup.compiling import compile_and_open, compiled_tags_in, insert
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)

TAG, OTHER = TAGS
# Without those about the other tag, so that more reads have a state to share.
PATHS = [path for path in paths() if not re.search(rf"[/=]{OTHER}\b", path)]
# The path, the number of writes since the request arrived, and whether it has the ETag of the response before that.
READS = st.lists(st.tuples(st.sampled_from(PATHS), st.integers(0, 2), st.booleans()), min_size=3, max_size=6)


@pytest.fixture
def compiled_tags(tmp_path):
    with compiled_tags_in(tmp_path):
        yield


@pytest.fixture
def waiting():
    """The next requests arrived at the time that is passed to the function (None: unknown)."""
    token = arrived.set(None)
    yield arrived.set
    arrived.reset(token)


def shared_in(states):
    """Lookups and other reads of states share those in `states` inside the block."""
    return patch.object(shared_states.shared_states, "_states", states._states)


def read(api, path, etag=None):
    answer = api.get(path, **({"If-None-Match": etag} if etag else {}))
    return answer.status, answer.headers.get("ETag"), answer.content


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.tuples(STEPS, st.booleans(), READS), min_size=5, max_size=15))
def test_a_response_is_that_of_a_state_since_the_arrival(api, compiled_tags, waiting, steps):
    clear()
    for kind in TYPES:
        PayloadType.objects.get_or_create(name=kind)
    # When each state began, and the responses in it.
    tested, history = SharedStates(), []
    for write, is_compiled, reads in [(("create", TAG), False, []), *steps]:
        waiting(None)
        play(api, write)
        # These reads must not let the tested ones share a state.
        with shared_in(SharedStates()):
            history.append((monotonic(), {path: read(api, path) for path in PATHS}))
        if is_compiled:
            compile_and_open(TAG)
        for path, writes, is_conditional in reads:
            since = max(0, len(history) - 1 - writes)
            possible = [responses[path] for _, responses in history[since:]]
            etag = history[max(0, since - 1)][1][path][1] if is_conditional else None
            waiting(history[since][0])
            with shared_in(tested):
                found = read(api, path, etag)
            assert found in possible or (found[0] == 304 and etag in {one[1] for one in possible}), (path, since)


@pytest.fixture
def tag(api):
    clear()
    api.post("pt", {"name": "Gain"}).ok()
    api.post("gt", {"name": "a", "status": "unlocked"}).ok()
    insert(api, "Gain", 1, tag="a")
    with shared_in(SharedStates()):
        yield "a"


def queries_of(api, path, etag=None):
    with CaptureQueriesContext(connection) as queries:
        status, *_ = read(api, path, etag)
    return status, len(queries)


@pytest.mark.parametrize(
    "path", ["globalTags", "globalTag/a?light", "gtPayloadLists/a", "payloadiovs/?gtName=a&majorIOV=2&minorIOV=0"]
)
def test_waiting_requests_are_confirmed_by_one_query(api, tag, waiting, path):
    _, etag, _ = read(api, path)
    waiting(monotonic())
    assert [queries_of(api, path, etag) for _ in range(3)] == [(304, 1), (304, 0), (304, 0)]
    # One that has just arrived asks for itself.
    waiting(monotonic())
    assert queries_of(api, path, etag) == (304, 1)
    # So does one of which it is unknown when it arrived.
    waiting(None)
    assert queries_of(api, path, etag) == (304, 1)


def test_waiting_lookups_at_other_moments_use_the_compiled_tag(api, compiled_tags, tag, waiting):
    compile_and_open(tag)
    lookups = [f"payloadiovs/?gtName=a&majorIOV={major}&minorIOV=0" for major in range(4)]
    waiting(monotonic())
    assert [queries_of(api, path)[1] for path in lookups] == [1, 0, 0, 0]
    waiting(None)
    insert(api, "Gain", 2, tag=tag)
    waiting(monotonic())
    # The compiled tag lacks the new row, so each lookup asks for it.
    assert [queries_of(api, path)[1] for path in lookups] == [1, 1, 1, 1]


def test_the_number_of_states_is_limited(monkeypatch):
    monkeypatch.setattr(shared_states, "MOST_TAGS", 3)
    states = SharedStates()
    for number in range(10):
        states.remember(f"tag{number}", shared_states.SharedState(monotonic(), None))
        assert len(states._states) <= 3
