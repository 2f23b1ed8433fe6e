"""Strictness about names: at our own paths a parameter or member that a route does not have is an error.

A misspelt name would otherwise be taken for one that was left out. At the paths of nopayloaddb such names are ignored,
because existing clients may send them.
"""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice

from rest_framework.request import Request

# The readable paths. None of nopayloaddb's begins like one of them.
OWN_PATH = re.compile(r"/api/cdb_rest/(global-tags|payload-types|payload-lists|payload-iovs|settings)(/|$)")
# More names than these, and longer ones, would only make the response large.
NAMED, NAMED_LENGTH = 5, 60


def is_own_path(request: Request) -> bool:
    """Whether a request came by a readable path, and not by one of nopayloaddb."""
    return bool(OWN_PATH.match(request.path))


def unknown_names(names: Iterable[str], known: Collection[str]) -> dict[str, list[str]]:
    """The names that are none of the known ones, each with what is wrong: the first `NAMED` of them, cut at `NAMED_LENGTH`."""
    unknown = islice((name[:NAMED_LENGTH] for name in names if name not in known), NAMED)
    return {name: [_sentence(name, known)] for name in unknown}


def _sentence(name: str, known: Collection[str]) -> str:
    nearest = get_close_matches(name, known, n=1)
    return f"There is no {name} here{f'; did you mean {nearest[0]}?' if nearest else '.'}"
