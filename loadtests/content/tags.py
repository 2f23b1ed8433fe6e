"""Global tags that load is put on: scenarios, and tags of any size whose names say it, such as `sized-50x1000`."""

import re

from cdb_rest.scenarios.definitions import HOUR, SCENARIOS, Scenario

SIZED = re.compile(r"[a-z]+-(\d+)x(\d+)")


def sized_tag(prefix: str, types: int, iovs_per_type: int) -> str:
    """The name of a tag with so many payload types and IOVs of each; the prefix has small letters alone."""
    return f"{prefix}-{types}x{iovs_per_type}"


def scenario_of(tag: str) -> Scenario:
    """What a tag has, by its name; its rows are in the random layout, by seed 1. Raises `KeyError` for another name."""
    if found := SIZED.fullmatch(tag):
        return Scenario(tag, int(found[1]), int(found[2]), HOUR, "to measure how cost grows")
    return SCENARIOS[tag]
