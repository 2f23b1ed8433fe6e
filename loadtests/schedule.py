"""What the user `Scheduled` plays: waves of requests, as a file that a campaign writes and locust reads."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Wave:
    """`count` requests of a route, one each `offset` seconds whatever becomes of those before; the recording has them under
    `name`. A wave begins when everything of the one before has been answered, or given up."""

    name: str
    route: str
    count: int
    offset: float


def write(path: Path, waves: Sequence[Wave]) -> None:
    """Make the file; its directory has to be there."""
    path.write_text(json.dumps([asdict(wave) for wave in waves], indent=1) + "\n")


def read(path: Path) -> list[Wave]:
    """The waves of a file."""
    return [Wave(**wave) for wave in json.loads(path.read_text())]
