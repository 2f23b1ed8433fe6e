"""Where this process is among those that count together, which whoever starts it says before the application is loaded."""

from dataclasses import dataclass
from pathlib import Path


@dataclass
class Place:
    """The process's place: the directory of the shared counts (None: it counts for itself alone), the name of the gunicorn
    instance it belongs to, how many threads a process of that has, the libpq URL of PgBouncer's console and the URL of nginx's
    status, where these stand around it."""

    directory: Path | None = None
    pool: str = "all"
    threads: int = 1
    pooler: str | None = None
    nginx: str | None = None


here = Place()
