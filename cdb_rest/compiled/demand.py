"""What PostgreSQL answers on this host: a file to which the processes of the service append, and which the compiler reads."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from cdb_rest.compiled.pack import root

# Without a compiler, nothing reads the file.
MOST_BYTES = 2**20

# By the names of tags: lookups that PostgreSQL answered wholly, and the lists that it answered for other lookups.
Demand = Mapping[str, Sequence[int]]


def append(demand: Demand) -> None:
    """Add what a process has counted since the last time. Raises `OSError`."""
    root().mkdir(mode=0o700, parents=True, exist_ok=True)
    with (root() / "demand").open("ab") as file:
        if file.tell() < MOST_BYTES:
            file.write(json.dumps(demand).encode() + b"\n")


def take() -> Iterator[Demand]:
    """What the processes have added since the last time. A line that is still being written may be lost. Raises `OSError`."""
    with suppress(FileNotFoundError):
        taken = (root() / "demand").rename(root() / "demand.taken")
        for line in taken.read_bytes().splitlines():
            with suppress(ValueError):
                yield json.loads(line)
        taken.unlink()
