"""Strategies: alternative implementations of the lookup, to compare their speed."""

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.views import APIView

from cdb_rest.api.lookup import lookup_schema
from cdb_rest.http.lookup import read_query
from cdb_rest.strategies.registry import Strategy


class StrategyLookupView(APIView):
    """The result of a lookup by one strategy. `view_of` creates a subclass for each strategy."""

    known = {"GET": ("strict",)}
    strategy: Strategy

    @lookup_schema
    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(self.strategy.run(read_query(request.query_params)), content_type="application/json")


def route_of(strategy: Strategy) -> str:
    """The path of a strategy, relative to the API."""
    return f"payloadiovs_strategies/{strategy.name}/"


def view_of(strategy: Strategy) -> type[StrategyLookupView]:
    """Create the view class of a strategy. Its name and docstring are the strategy's name and description."""
    name = "".join(word.capitalize() for word in strategy.name.split("_"))
    view = type(f"{name}LookupView", (StrategyLookupView,), {"strategy": strategy, "__doc__": strategy.description})
    return extend_schema_view(get=extend_schema(summary=f"Look up payloads by {strategy.name}"))(view)
