"""The schedule of the user `Scheduled`: waves of requests, in a file that the campaign hammer writes and locust reads."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Wave:
    """`count` requests to a route, one every `offset` seconds, whatever the outcome of earlier ones.

    `offset_ms` is the time between two requests before it is multiplied by `scale`. A wave begins when all requests of
    the previous one have ended.
    """

    route: str
    count: int
    offset_ms: int
    scale: float = 1.0

    @property
    def name(self) -> str:
        """The name of the requests in the recording."""
        return f"{self.route}: {self.count} × {self.offset_ms} ms"

    @property
    def offset(self) -> float:
        """The seconds between two requests."""
        return self.offset_ms / 1000 * self.scale


def write(path: Path, waves: Sequence[Wave]) -> None:
    """Write the file; its directory must exist."""
    path.write_text(json.dumps([asdict(wave) for wave in waves], indent=1) + "\n")


def read(path: Path) -> list[Wave]:
    """Read the waves from the file."""
    return [Wave(**wave) for wave in json.loads(path.read_text())]
