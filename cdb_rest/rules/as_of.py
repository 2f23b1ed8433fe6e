"""The past state of a global tag that a request asks for."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class AsOf:
    """A revision of a global tag, or the time at which a revision was the newest one. Exactly one of them is not None.

    `time` must have a time zone.
    """

    revision: int | None = None
    time: datetime | None = None

    def __str__(self) -> str:
        return f"revision {self.revision}" if self.time is None else f"state at {self.time.isoformat()}"


# A global tag by name, in the present (None) or in the past.
TagState = tuple[str, AsOf | None]
