"""The base class of views that reject unknown query parameters."""

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.views import APIView

from cdb_rest.domain.errors import UnknownParameterError
from cdb_rest.parsing.unknown_names import unknown_names


class StrictView(APIView):
    """A view that rejects unknown query parameters; `query` declares the known ones.

    A view that has a path of nopayloaddb must not be strict, because existing clients may send unknown parameters.
    Such a view ignores them on all of its paths.
    """

    query: Sequence[OpenApiParameter] = ()

    def initial(self, request: Request, *arguments: Any, **named: Any) -> None:
        """Check the permissions, then the query string, before the method of the view runs.

        Raises the errors of `RoutePermission`, or `UnknownParameterError`.
        """
        super().initial(request, *arguments, **named)
        unknown = unknown_names(request.query_params, [parameter.name for parameter in self.query])
        if unknown:
            raise UnknownParameterError(" ".join(text for [text] in unknown.values()), unknown)
