"""The response to a request for lookups at many moments."""

from collections.abc import Generator, Iterator, Sequence

from django.http import HttpResponseBase

from cdb_rest.api.json import dump
from cdb_rest.api.json_stream import array, respond
from cdb_rest.http.caching import REVISION_HEADER, combined, revisions_of
from cdb_rest.lookup.many import Result, look_up_many
from cdb_rest.lookup.model import LookupQuery
from cdb_rest.lookup.stack import Stack
from cdb_rest.lookup.states import read_state
from cdb_rest.rules.moment import Moment


def lookups(queries: Sequence[LookupQuery], moments: Sequence[Moment]) -> HttpResponseBase:
    """A JSON array of the results at the moments, with the revisions of the tags. There is one query for each tag."""
    revisions = ""

    def pieces() -> Generator[bytes]:
        nonlocal revisions
        revisions = revisions_of(combined([read_state(query.tag, query.as_of) for query in queries]))
        yield from array(_element(found) for found in look_up_many(Stack(queries), moments))

    # It makes the first pieces, so the revisions have been read when it returns.
    response = respond(pieces())
    response[REVISION_HEADER] = revisions
    return response


def _element(found: Result) -> Iterator[bytes]:
    moments = [list(one) for one in found.moments]
    if found.body is None:
        yield dump({"moments": moments, "same_as": found.same_as})
    else:
        yield from (b'{"moments":', dump(moments), b',"rows":', found.body, b"}")
