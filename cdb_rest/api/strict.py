"""Strictness about names: at our own paths a parameter or member that a route does not have is an error.

A misspelt name would otherwise be taken for one that was left out. At the paths of nopayloaddb such names are ignored,
because existing clients may send them.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.views import APIView

from cdb_rest.domain.errors import UnknownParameterError

# The readable paths. None of nopayloaddb's begins like one of them.
OWN_PATH = re.compile(r"/api/cdb_rest/(global-tags|payload-types|payload-lists|payload-iovs|settings)(/|$)")
# More names than these, and longer ones, would only make the response large.
NAMED, NAMED_LENGTH = 5, 60


class OwnView(APIView):
    """A view that nopayloaddb does not have: `query` are all the parameters that its query string may have."""

    query: Sequence[OpenApiParameter] = ()

    def initial(self, request: Request, *arguments: Any, **named: Any) -> None:
        """Before the view's method. Raises `UnknownParameterError`."""
        super().initial(request, *arguments, **named)
        unknown = unknown_names(request.query_params, [parameter.name for parameter in self.query])
        if unknown:
            raise UnknownParameterError(" ".join(text for [text] in unknown.values()), unknown)


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
