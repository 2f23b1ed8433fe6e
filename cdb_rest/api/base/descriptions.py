"""Helpers with which views declare parameters and examples for the OpenAPI description."""

from typing import Any, Literal

from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from cdb_rest.rules.moment import OPEN

TEXT = {"type": "string"}
NUMBER = {"type": "integer", "minimum": 0, "maximum": OPEN}
COMMENT_HEADER = "CDB-Comment"
KEY_HEADER = "Idempotency-Key"
# The parameters of every write; the description of the API adds them.
WRITE_PARAMETERS = [
    OpenApiParameter("dry_run", str, enum=["0", "1"], description="1: return the response and change nothing."),
    OpenApiParameter(
        KEY_HEADER,
        str,
        OpenApiParameter.HEADER,
        description="A new UUID. Within `CDB_IDEMPOTENCY_HOURS`, a request that is sent again with it gets the first response, "
        "and nothing is stored twice.",
    ),
    OpenApiParameter(
        COMMENT_HEADER, str, OpenApiParameter.HEADER, description="Why the change is made, for the change log."
    ),
]
# The parameters of `parse_as_of`.
AS_OF = [
    OpenApiParameter(
        "rev", NUMBER, description="A revision of the tag, also of one that was deleted: respond as it was then."
    ),
    OpenApiParameter(
        "at",
        {"type": "string", "format": "date-time"},
        description="A time instead of a revision: the newest revision then. Without a time zone, it is in UTC.",
    ),
]


def base_parameter(name: str) -> OpenApiParameter:
    """The description of a parameter for the tags after the first one."""
    return OpenApiParameter(
        name,
        str,
        many=True,
        description="A further global tag; for each payload type, the first tag with a valid IOV decides.",
    )


def required(name: str, kind: dict[str, Any], description: str, example: str | int) -> OpenApiParameter:
    """A required query parameter with the schema `kind`, and an example from the scenario tiny."""
    return _parameter(name, OpenApiParameter.QUERY, kind, description, example)


def in_path(name: str, description: str, example: str | int, kind: dict[str, Any] | None = None) -> OpenApiParameter:
    """A path parameter with the schema `kind`, and an example for the scenario tiny.

    Without `kind`, the type of the example determines the schema: `NUMBER` for an int, `TEXT` for a str.
    """
    kind = kind or (NUMBER if isinstance(example, int) else TEXT)
    return _parameter(name, OpenApiParameter.PATH, kind, description, example)


def request_example(value: Any) -> OpenApiExample:
    """A request body that is valid in the scenario tiny."""
    return OpenApiExample("In the scenario tiny", value, request_only=True)


def response_example(value: Any, name: str = "In the scenario tiny") -> OpenApiExample:
    """An example of a response in the scenario tiny. Arrays may lack elements, and objects without an id members.

    `name` must be the default, or "With " and a query string, such as "With page=1". A test sends the example
    parameters of the operation, with this query string, and compares the response.
    """
    return OpenApiExample(name, value, response_only=True)


def _parameter(
    name: str, place: Literal["query", "path"], kind: dict[str, Any], description: str, example: str | int
) -> OpenApiParameter:
    return OpenApiParameter(name, kind | {"example": example}, place, required=True, description=description)
