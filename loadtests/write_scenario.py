"""Writes a scenario of any size: `python -m loadtests.write_scenario TAG TYPES IOVS_PER_TYPE`.

A program of its own, because the service's modules belong to the one database that a process is started for.
"""

import os
import sys

import django


def main(tag: str, types: int, iovs_per_type: int) -> None:
    """Random layout, seed 1; the tag must not be there."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cdb.settings")
    django.setup()
    from cdb_rest.scenarios import writer
    from cdb_rest.scenarios.definitions import HOUR, Scenario

    scenario = Scenario(tag, types, iovs_per_type, HOUR, "to measure how cost grows")
    writer.write(scenario, tag=tag, layout="random", seed=1, progress=lambda _: None)
    writer.refresh_statistics()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
