"""Views that nopayloaddb does not have."""

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.views import APIView

from cdb_rest.domain.errors import UnknownParameterError
from cdb_rest.parsing.unknown_names import unknown_names


class OwnView(APIView):
    """A view that nopayloaddb does not have: `query` are all the parameters that its query string may have."""

    query: Sequence[OpenApiParameter] = ()

    def initial(self, request: Request, *arguments: Any, **named: Any) -> None:
        """Before the view's method. Raises `UnknownParameterError`."""
        super().initial(request, *arguments, **named)
        unknown = unknown_names(request.query_params, [parameter.name for parameter in self.query])
        if unknown:
            raise UnknownParameterError(" ".join(text for [text] in unknown.values()), unknown)
