"""URL patterns of the API, from the table of routes."""

from collections.abc import Iterable
from importlib import import_module

from django.conf import settings
from django.urls import URLPattern, path
from rest_framework.views import APIView

from cdb_rest.api import strategies
from cdb_rest.routes import MOMENT, ROUTES, Route
from cdb_rest.strategies.registry import STRATEGIES

# Alternative implementations of the lookup for comparison, served only with CDB_STRATEGIES.
STRATEGY_ROUTES = tuple(
    Route(strategies.view_of(strategy), (strategies.route_of(strategy),), queries={MOMENT: strategy.queries})
    for strategy in STRATEGIES.values()
)


def served_routes() -> tuple[Route, ...]:
    """All routes that the service has: `ROUTES`, and with the setting `CDB_STRATEGIES` also `STRATEGY_ROUTES`."""
    return ROUTES + STRATEGY_ROUTES if settings.CDB_STRATEGIES else ROUTES


def view_of(route: Route) -> type[APIView]:
    """The view class of a route. It is imported if `route.view` is a name.

    Raises `ModuleNotFoundError` or `AttributeError` if `route.view` names no class.
    """
    if not isinstance(route.view, str):
        return route.view
    module, _, name = route.view.partition(".")
    view: type[APIView] = getattr(import_module(f"cdb_rest.api.{module}"), name)
    return view


def views_and_paths(routes: Iterable[Route] = ROUTES) -> list[tuple[type[APIView], tuple[str, ...]]]:
    """The view class and the paths of each route. By default, the routes of strategies are left out.

    The paths are relative to `/api/cdb_rest/`, each in only one spelling of its trailing slash.
    """
    return [(view_of(route), route.paths) for route in routes]


def patterns(routes: Iterable[Route]) -> list[URLPattern]:
    """The URL patterns of the routes: each path with and without its trailing slash.

    Patterns without parameters come first. Otherwise `payload-iovs/<str:iov_id>` would match `payload-iovs/insert`.
    """
    spellings = [(spelling, view_of(route)) for route in routes for spelling in route.spellings]
    return [path(spelling, view.as_view()) for spelling, view in sorted(spellings, key=lambda one: "<" in one[0])]


urlpatterns = patterns(served_routes())
