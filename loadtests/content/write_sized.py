"""Write tags by their names, such as tiny or sized-50x1000 (`content/tags.py`): `python -m loadtests.content.write_sized NAME …`.

It is a separate program, because the modules of the service are bound to one database per process.
"""

import os
import sys
from collections.abc import Sequence

import django

from loadtests.content.tags import scenario_of


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
