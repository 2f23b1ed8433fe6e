"""The global tags of load tests: scenarios, and tags of any size whose names give it, such as `sized-50x1000`.

`python -m loadtests.content.tags NAME …` writes such tags. It is a separate program, because the modules of the
service are bound to one database per process.
"""

import os
import re
import sys
from collections.abc import Sequence

import django

from cdb_rest.scenarios.definitions import HOUR, SCENARIOS, Scenario

# A prefix, the number of payload types and that of the IOVs of each.
SIZED = re.compile(r"[a-z]+-(\d+)x(\d+)")


def sized_tag(prefix: str, types: int, iovs_per_type: int) -> str:
    """The name of a tag with `types` payload types and `iovs_per_type` IOVs of each; `prefix` consists of a-z."""
    return f"{prefix}-{types}x{iovs_per_type}"


def scenario_of(tag: str) -> Scenario:
    """The content of a tag by its name, in the random layout with seed 1. Raises `KeyError` for an unknown name."""
    if found := SIZED.fullmatch(tag):
        return Scenario(tag, int(found[1]), int(found[2]), HOUR, "to measure how cost grows")
    return SCENARIOS[tag]


def main(tags: Sequence[str]) -> None:
    """Write the tags in the random layout with seed 1; existing tags are replaced."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cdb.settings")
    django.setup()
    from cdb_rest.scenarios import writer

    for tag in tags:
        writer.write(scenario_of(tag), tag=tag, layout="random", seed=1, progress=lambda _: None, replace=True)
    writer.refresh_statistics()


if __name__ == "__main__":
    main(sys.argv[1:])
