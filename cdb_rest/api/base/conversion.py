"""Documents of responses: their declarations, and the conversion of rows to them.

A class declares the members of a document and the column of each; it serves the OpenAPI description, too. No model instances
are created, so that half a million rows take seconds.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from django.db.models import Model, QuerySet
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

Document = dict[str, Any]
# A serializer for rows of any model.
Shape = serializers.Serializer[Any]


def one_of(*shapes: Shape | serializers.ListSerializer[Any]) -> PolymorphicProxySerializer:
    """A response with one of several shapes, for the OpenAPI description."""
    names = (getattr(shape, "child", shape).__class__.__name__ for shape in shapes)
    return PolymorphicProxySerializer(
        component_name="Or".join(names),
        serializers=list(shapes),  # type: ignore[arg-type]  # arrays are accepted as well
        resource_type_field_name=None,
        many=False,
    )


# For each member of a document: the path of its column, the layout of a nested document, or None for an array that is
# filled later.
Layout = tuple[tuple[str, "str | Layout | None"], ...]


def documents(shape: type[Shape], rows: QuerySet[Model], also: tuple[str, ...] = ()) -> list[Document]:
    """The rows as documents, in one query. `also` names further columns to include. Nested arrays are empty."""
    layout = _layout(shape) + tuple((column, column) for column in also)
    return [_assemble(layout, iter(row)) for row in rows.values_list(*_paths(layout))]


def stream_documents(shape: type[Shape], rows: QuerySet[Model]) -> Iterator[Document]:
    """Like `documents`, but with a server-side cursor, so that memory is bounded.

    Consume it inside one transaction, because PgBouncer may use another server connection for the next one.
    """
    layout = _layout(shape)
    for row in rows.values_list(*_paths(layout)).iterator():
        yield _assemble(layout, iter(row))


def documents_from(shape: type[Shape], rows: Iterable[Mapping[str, Any]]) -> Iterator[Document]:
    """Rows that are not rows of a model as documents. Nested arrays are empty.

    Each row maps the columns that `shape` declares to their values. The names of the columns of related objects are
    those of Django's queries, such as `payload_list__name`.
    """
    layout = _layout(shape)
    paths = tuple(_paths(layout))
    for row in rows:
        yield _assemble(layout, (row[path] for path in paths))


def document(shape: type[Shape], rows: QuerySet[Model]) -> Document | None:
    """The first row as a document; None if there are no rows."""
    found = documents(shape, rows[:1])
    return found[0] if found else None


def document_of(shape: type[Shape], row: object) -> Document:
    """A model instance, or another object that a write returns, as a document. Nested arrays are empty.

    The row is not read again, because it may be deleted by now. The caller must load the related objects whose columns
    `shape` declares. Otherwise this function reads them from the database.
    """
    layout = _layout(shape)
    return _assemble(layout, (_follow(row, path) for path in _paths(layout)))


def _follow(row: Any, path: str) -> Any:
    for name in path.split("__"):
        row = None if row is None else row.get(name) if isinstance(row, dict) else getattr(row, name)
    return row


@cache
def _layout(shape: type[Shape], prefix: str = "") -> Layout:
    parts: list[tuple[str, str | Layout | None]] = []
    for key, field in shape().fields.items():
        path = prefix + str(field.source).replace(".", "__")
        if isinstance(field, serializers.ListSerializer):
            parts.append((key, None))
        elif isinstance(field, serializers.Serializer):
            parts.append((key, _layout(type(field), f"{path}__")))
        else:
            parts.append((key, path))
    return tuple(parts)


def _paths(layout: Layout) -> Iterator[str]:
    for _, part in layout:
        if isinstance(part, str):
            yield part
        elif part is not None:
            yield from _paths(part)


def _assemble(layout: Layout, values: Iterator[Any]) -> Document:
    return {
        key: next(values) if isinstance(part, str) else [] if part is None else _assemble(part, values)
        for key, part in layout
    }
