"""The schedule of the user `Scheduled`: waves of requests, in a file that a campaign writes and locust reads."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Wave:
    """`count` requests to a route, one every `offset` seconds, whatever the outcome of earlier ones.

    `name` is the name of the requests in the recording. A wave begins when all requests of the previous one have ended.
    """

    name: str
    route: str
    count: int
    offset: float


def write(path: Path, waves: Sequence[Wave]) -> None:
    """Write the file; its directory must exist."""
    path.write_text(json.dumps([asdict(wave) for wave in waves], indent=1) + "\n")


def read(path: Path) -> list[Wave]:
    """Read the waves from the file."""
    return [Wave(**wave) for wave in json.loads(path.read_text())]
