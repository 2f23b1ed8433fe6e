"""URLs of static files that change with their contents, so that browsers may keep the files forever."""

from functools import cache
from hashlib import sha256
from pathlib import Path

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage

# The files of the pages. Templates refer to them with `{% static %}` only.
DIRECTORY = "cdb_web/"


class HashedStaticFilesStorage(StaticFilesStorage):
    """Static files of installed packages; the URL of a file of the pages has the hash of its contents as a parameter.

    Django's own storage with hashes needs a directory with a copy of all files (`collectstatic`).
    """

    def url(self, name: str | None) -> str:
        url = super().url(name)
        return f"{url}?{_hash_of(name)}" if name and name.startswith(DIRECTORY) else url


@cache
def _hash_of(name: str) -> str:
    path = finders.find(name)
    if not path:
        raise ValueError(f"There is no static file {name}.")
    return sha256(Path(path).read_bytes()).hexdigest()[:12]
