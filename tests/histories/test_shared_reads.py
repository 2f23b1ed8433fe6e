"""A request may use what another one has read, but never gets a response older than its beginning."""

import re
from contextlib import contextmanager
from time import monotonic
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdb_rest.http import hot_reads
from cdb_rest.lookup import shared_reads
from cdb_rest.models import PayloadType
from cdb_rest.observe.request_context import RequestContext, current_context
from tests.histories.steps import STEPS, TAGS, TYPES, clear, paths, play
from tests.lookup.compiling import compile_and_open, delete_compiled
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)
TAG, OTHER = TAGS
# Without those about the other tag, so that more reads have a state to share.
PATHS = [path for path in paths() if not re.search(rf"[/=]{OTHER}\b", path)]
# The path, the number of writes since the request began, and whether it has the ETag of the response before that.
READS = st.lists(st.tuples(st.sampled_from(PATHS), st.integers(0, 2), st.booleans()), min_size=3, max_size=6)


@pytest.fixture
def waiting():
    """The next requests began at the time that is passed to the function (None: unknown)."""

    def begin(time):
        context = None if time is None else RequestContext({})
        if context is not None:
            context.began = time
        current_context.set(context)

    begin(None)
    yield begin
    current_context.set(None)


@contextmanager
def shared_in(found):
    """Reads share what is in `found`, two dictionaries, inside the block."""
    with (
        patch.object(shared_reads.shared_states, "_found", found[0]),
        patch.object(hot_reads._kept, "_found", found[1]),
    ):
        yield


def read(api, path, etag=None):
    answer = api.get(path, **({"If-None-Match": etag} if etag else {}))
    return answer.status, answer.headers.get("ETag"), answer.content


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.tuples(STEPS, st.booleans(), READS), min_size=5, max_size=15))
def test_a_response_is_that_of_a_state_since_the_request_began(api, compiled_tags, waiting, steps):
    clear()
    delete_compiled()
    for kind in TYPES:
        PayloadType.objects.get_or_create(name=kind)
    # When each state began, and the responses in it.
    tested, history, bodies = ({}, {}), [], {}
    for write, is_compiled, reads in [(("create", TAG), False, []), *steps]:
        waiting(None)
        play(api, write)
        # These reads must not let the tested ones share a state.
        with shared_in(({}, {})):
            history.append((monotonic(), {path: read(api, path) for path in PATHS}))
        # One ETag has one body.
        for path, (_, etag, body) in history[-1][1].items():
            assert etag is None or bodies.setdefault((path, etag), body) == body
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
