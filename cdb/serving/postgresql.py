"""The settings of deploy/postgresql.conf, with values for the size of memory and disk."""

import re

from cdb import env
from cdb.processes.machine import disk_megabytes, memory_megabytes, share
from cdb.serving import templates
from cdb.serving.pools import connections

FILE = "postgresql.conf"
SETTING = re.compile(r"^(\w+) = '?([^'#]*?)'?\s*(?:#.*)?$", re.MULTILINE)


def sizes(memory: int, disk: int) -> dict[str, str]:
    """The values of the placeholders except CONNECTIONS, for `memory` and `disk` in MiB.

    The comments in deploy/postgresql.conf have the rules.
    """
    return {
        "SHARED_BUFFERS": share(memory, 4, 128, 16384),
        "EFFECTIVE_CACHE_SIZE": f"{max(256, memory * 5 // 8)}MB",
        "WORK_MEM": share(memory, 512, 4, 64),
        "MAINTENANCE_WORK_MEM": share(memory, 16, 64, 2048),
        "MAX_WAL": share(disk, 20, 256, 8192),
        "MIN_WAL": share(disk, 160, 80, 1024),
        "SLOT_WAL": share(disk, 10, 512, 10240),
    }


def disk_here() -> int:
    """The size of the disk of CDB_DATA_DIR, in MiB."""
    return disk_megabytes(env.read()["CDB_DATA_DIR"])


def options(memory: int | None = None, cores: int | None = None) -> dict[str, str]:
    """The settings by name, for a machine with `memory` in MiB and `cores`, by default this machine.

    The size of the disk is always that of this machine. `max_connections` follows from the connections of the pools.
    """
    values = sizes(memory or memory_megabytes(), disk_here())
    text = templates.fill(FILE, values | {"CONNECTIONS": connections(cores)})
    return dict(SETTING.findall(text))
