"""The OpenAPI description, generated from the table of routes and the views.

Operations are grouped by the module of their view, in the order of the table. The docstring of a module is the name of
the group, a colon and a sentence. If several paths with the same parameters lead to the same operation, only one is in
the group: the last one in the first of their routes. The others are in the group of legacy paths at the end, where
users of existing clients find them.
"""

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentRegistry
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.views import APIView

from cdb_rest.api.base.authorization import is_write
from cdb_rest.api.base.conversion import Shape
from cdb_rest.api.base.descriptions import WRITE_PARAMETERS


class Error(Shape):
    """An error. Further members may name invalid fields or rows."""

    detail = serializers.CharField()
    code = serializers.CharField()
    rows = serializers.ListField(child=serializers.DictField(), required=False)


PREFIX = "/api/cdb_rest/"
LEGACY = "Legacy paths"
LEGACY_SENTENCE = "The same operations at the paths that clients of nopayloaddb send. New clients use the paths above."
ERROR = OpenApiResponse(
    Error,
    "Any error. Programs rely on the status and on `code`; `detail` is for people.",
    [
        OpenApiExample(
            "An unknown global tag", {"detail": "There is no global tag 'x'.", "code": "global_tag_not_found"}
        )
    ],
)

Endpoint = tuple[str, str, str, Callable[..., Any]]


class RouteSchema(AutoSchema):
    """The description of an operation: its id, group, parameters, legacy paths and error response."""

    def get_operation_id(self) -> str:
        words = re.findall(r"\w+", self.path.removeprefix(PREFIX))
        return "_".join([self.method.lower(), *words])

    def get_tags(self) -> list[str]:
        return [group_of(type(self.view))[0]]

    def get_override_parameters(self) -> list[OpenApiParameter | Shape | type[Shape]]:
        # Only a `StrictView` has them. Its module imports this one.
        return [*getattr(self.view, "query", ()), *(WRITE_PARAMETERS if is_write(self.method, self.path) else ())]

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: ComponentRegistry
    ) -> dict[str, Any] | None:
        operation = super().get_operation(path, path_regex, path_prefix, method, registry)
        if operation is None:
            return None
        # This method of the library has no type annotations.
        error = self._get_response_for_code(ERROR, "default")  # type: ignore[no-untyped-call]
        operation["responses"]["default"] = error
        if "parameters" in operation:
            # A view with several paths declares the parameters of all of them; keep those of this path.
            operation["parameters"] = [
                parameter
                for parameter in operation["parameters"]
                if parameter["in"] != "path" or f"{{{parameter['name']}}}" in self.path
            ]
        main, *others = self._paths()
        if self.path == main:
            legacy = "".join(f"\n\nLegacy path: `{self.method} {path}`" for path in others)
            return operation | {"description": operation["description"] + legacy}
        same = f"Same as {self.method} {main}"
        return operation | {"summary": same, "description": f"{same}, where it is described.", "tags": [LEGACY]}

    def _paths(self) -> list[str]:
        """The paths with the same parameters that lead to this operation, the main one first.

        The main path is the last one in the first route that has such paths.
        """
        method = self.method.lower()
        handler = getattr(type(self.view), method)
        rows = [paths for view, paths in _documented_routes() if getattr(view, method, None) is handler]
        alike = [[path for path in row if _variables(path) == _variables(self.path)] for row in rows]
        main = alike[0][-1]
        return [main, *(path for row in alike for path in row if path != main)]


def documented_endpoints(endpoints: list[Endpoint]) -> list[Endpoint]:
    """The endpoints of the table of routes, in its order. All others are omitted. A hook of drf-spectacular.

    A path that is served with and without a trailing slash is included once, as it is written in the table.
    """
    by_path: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint[0], []).append(endpoint)
    return [endpoint for _, paths in _documented_routes() for path in paths for endpoint in by_path[path]]


def describe_groups(result: dict[str, Any], **_: object) -> dict[str, Any]:
    """Add the groups to the OpenAPI description, in the order of the table of routes. A hook of drf-spectacular."""
    groups = dict(group_of(view) for view, _ in _documented_routes()) | {LEGACY: LEGACY_SENTENCE}
    return result | {"tags": [{"name": name, "description": sentence} for name, sentence in groups.items()]}


def group_of(view: type[APIView]) -> tuple[str, str]:
    """The name and the sentence of a view's group, from the docstring of its module."""
    name, _, sentence = (inspect.getdoc(sys.modules[view.__module__]) or "").partition(": ")
    return name, sentence[:1].upper() + sentence[1:]


def _documented_routes() -> list[tuple[type[APIView], list[str]]]:
    """The views and paths of the served routes, with parameters in the format of OpenAPI."""
    # Imported here, because Django REST framework imports this module while the views are imported.
    from cdb_rest.api.urls import served_routes, views_and_paths

    return [
        (view, [PREFIX + re.sub(r"<str:(\w+)>", r"{\1}", path) for path in paths])
        for view, paths in views_and_paths(served_routes())
    ]


def _variables(path: str) -> set[str]:
    return set(re.findall(r"{(\w+)}", path))
