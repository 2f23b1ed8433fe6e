"""What a request's route is called where requests are counted or recorded: by its pattern, so that there are few names."""

import re
from collections.abc import Callable
from functools import lru_cache
from inspect import unwrap

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import ResolverMatch, resolve

from cdb_rest.api.errors import route_not_found
from cdb_rest.observe.exchange import exchange_of

STATIC_FILES = f"/{settings.STATIC_URL.strip('/')}/<file>"
PARAMETER = re.compile(r"\(\?P<(\w+)>[^)]*\)|<(?:\w+:)?(\w+)>")
ANCHORS = re.compile(r"[\^$]|/\?")


@lru_cache(maxsize=1000)
def name_of(pattern: str) -> str:
    """The name of a pattern as Django has it: the path with a word for each part that varies, and no slash at its end."""
    named = PARAMETER.sub(lambda found: f"<{found[1] or found[2]}>", pattern)
    return f"/{ANCHORS.sub('', named).rstrip('/')}"


class RouteMiddleware:
    """Notes the route of each request that Django handles, also of those that are refused before it is looked for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        match = request.resolver_match or resolve(request.path_info)
        exchange_of(request.META).route = _route_of(match, request, response)
        return response


def _route_of(match: ResolverMatch, request: HttpRequest, response: HttpResponse) -> str | None:
    if unwrap(match.func) is not route_not_found:
        return name_of(match.route)
    is_file = response.status_code < 400 and request.path_info.startswith(settings.STATIC_URL)
    return STATIC_FILES if is_file else None
