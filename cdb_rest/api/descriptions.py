"""Parameters and examples of the OpenAPI description, as the views declare them."""

from typing import Any, Literal

from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from cdb_rest.domain.moment import OPEN

TEXT = {"type": "string"}
NUMBER = {"type": "integer", "minimum": 0, "maximum": OPEN}


def required(name: str, kind: dict[str, Any], description: str, example: str | int) -> OpenApiParameter:
    """A parameter of the query string that must be given, with its value in the scenario tiny."""
    return _parameter(name, OpenApiParameter.QUERY, kind, description, example)


def in_path(name: str, description: str, example: str | int, kind: dict[str, Any] | None = None) -> OpenApiParameter:
    """A parameter in the path, with its value in the scenario tiny: a number if that is one."""
    kind = kind or (NUMBER if isinstance(example, int) else TEXT)
    return _parameter(name, OpenApiParameter.PATH, kind, description, example)


def request_example(value: Any) -> OpenApiExample:
    """The body of a request that succeeds in the scenario tiny."""
    return OpenApiExample("In the scenario tiny", value, request_only=True)


def response_example(value: Any, name: str = "In the scenario tiny") -> OpenApiExample:
    """What the example parameters give in the scenario tiny; another name tells the query string, such as "With page=1"."""
    return OpenApiExample(name, value, response_only=True)


def _parameter(
    name: str, place: Literal["query", "path"], kind: dict[str, Any], description: str, example: str | int
) -> OpenApiParameter:
    return OpenApiParameter(name, kind | {"example": example}, place, required=True, description=description)
