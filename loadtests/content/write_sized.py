"""Writes tags whose names say their size: `python -m loadtests.content.write_sized sized-50x1000 …`.

A program of its own, because the service's modules belong to the one database that a process is started for.
"""

import os
import sys
from collections.abc import Sequence

import django

from loadtests.content.tags import scenario_of


def main(tags: Sequence[str]) -> None:
    """Random layout, seed 1; a tag of the same name goes first."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cdb.settings")
    django.setup()
    from cdb_rest.scenarios import writer

    for tag in tags:
        writer.write(scenario_of(tag), tag=tag, layout="random", seed=1, progress=lambda _: None, replace=True)
    writer.refresh_statistics()


if __name__ == "__main__":
    main(sys.argv[1:])
