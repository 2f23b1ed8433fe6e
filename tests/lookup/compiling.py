"""Lookups in compiled tags, held against those of PostgreSQL."""

from collections import Counter
from dataclasses import replace
from itertools import product

from cdb_rest.domain.errors import CdbError
from cdb_rest.domain.moment import Mode, Moment
from cdb_rest.lookup.model import NO_VALIDATORS, LookupQuery
from cdb_rest.lookup.queries import look_up, look_up_here
from cdb_rest.metrics import counts

KINDS = {
    "none": counts.COMPILED_ALONE,
    "confirmed": counts.COMPILED_CONFIRMED,
    "changed": counts.COMPILED_CHANGED,
    "all": counts.COMPILED_ALL,
}
# Every combination of only_valid, as_objects and with_window.
FORMS = list(product((False, True), repeat=3))


def kinds():
    """The numbers of lookups in compiled tags until now, by the part of the database."""
    return Counter({kind: int(number.get()) for kind, number in KINDS.items()})


def same_as_postgresql(tag, moment, mode=Mode.CONTINUOUS, as_of=None):
    """Assert that every form of a lookup has the same result as without compiled tags: state, body and window, or the error."""
    for only_valid, as_objects, with_window in FORMS:
        query = LookupQuery(tag, Moment(*moment), only_valid, as_objects, mode, as_of)
        expected = result_of(look_up_here, query, with_window)
        assert result_of(look_up, query, with_window) == expected, query


def result_of(function, query, with_window):
    try:
        found = function(query, NO_VALIDATORS, with_window=with_window)
        # The time of modification is None until it is reached, which may be between two lookups.
        return replace(found, state=replace(found.state, modified=None))
    except CdbError as error:
        return type(error), str(error)
