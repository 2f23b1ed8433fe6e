"""Errors for unknown query parameters and unknown members of bodies.

Without them, the service would ignore a misspelt optional name. Unknown members are rejected on the service's own paths
(`is_own_path`). Unknown parameters are rejected by views that nopayloaddb does not have (`StrictView`). Other requests
may have unknown names, because existing clients may send them.
"""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice

from rest_framework.request import Request

# The service's own paths, except `whoami`, which accepts no body. No path of nopayloaddb has one of these prefixes.
OWN_PATH = re.compile(r"/api/cdb_rest/(global-tags|payload-types|payload-lists|payload-iovs|settings)(/|$)")
# The maximum number of names in an error, and their maximum length. They limit the size of the response.
NAMED, NAMED_LENGTH = 5, 60


def is_own_path(request: Request) -> bool:
    """Whether a request uses one of the service's own paths, not one of nopayloaddb's."""
    return bool(OWN_PATH.match(request.path))


def unknown_names(names: Iterable[str], known: Collection[str]) -> dict[str, list[str]]:
    """Error messages for the names that are not in `known`, by name; empty if all are known.

    Only the first `NAMED` unknown names are reported, each cut to `NAMED_LENGTH` characters.
    """
    unknown = islice((name[:NAMED_LENGTH] for name in names if name not in known), NAMED)
    return {name: [_message(name, known)] for name in unknown}


def _message(name: str, known: Collection[str]) -> str:
    nearest = get_close_matches(name, known, n=1)
    return f"{name} is not known here{f'; did you mean {nearest[0]}?' if nearest else '.'}"
