"""The plans of statements, as EXPLAIN (FORMAT JSON) writes them."""

from collections.abc import Iterator
from typing import Any


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All nodes of a plan."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)
