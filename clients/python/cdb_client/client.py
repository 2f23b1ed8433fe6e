"""`Client`: the public API."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from cdb_client.config import read_config
from cdb_client.errors import InputError, NotFoundError
from cdb_client.files import Files
from cdb_client.online import Online
from cdb_client.requests import Requests
from cdb_client.snapshot_file import SnapshotFile
from cdb_client.sources import Item
from cdb_client.tag import Tag
from cdb_client.transport import Transport
from cdb_client.writes import Writes


class Client:
    """Reads and writes of one service, or reads of a snapshot.

    `server` is an address or a name of the configuration file; `snapshot` is the file of a snapshot, which answers instead of
    a server. `cache` is the directory of the cache, or False for none on disk. A client asks once whether the stored state of
    a tag is current, or again after `max_age` seconds, or at each use if `fresh`; a state that cannot change is never
    validated. A client can be used by several threads.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        snapshot: str | Path | None = None,
        token: str | None = None,
        cache: str | Path | bool | None = None,
        retry_for: float | None = None,
        payload_base: str | None = None,
        max_age: float | None = None,
        fresh: bool = False,
    ) -> None:
        self.config = read_config(
            server,
            token=token,
            cache=Path(cache) if isinstance(cache, str | Path) else None,
            retry_for=retry_for,
            payload_base=payload_base,
            max_age=0 if fresh else max_age,
        )
        if cache is False:
            self.config = replace(self.config, cache=None)
        self.source = Online(Transport(self.config)) if snapshot is None else SnapshotFile(snapshot)
        self._known_types: frozenset[str] = frozenset()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and the connections."""
        self.source.close()

    @property
    def transport(self) -> Transport:
        """The requests to the service. Raises `InputError` if a snapshot is read."""
        if isinstance(self.source, SnapshotFile):
            raise InputError(f"This needs a service; {self.source.name} cannot do it.")
        return self.source.transport

    @cached_property
    def files(self) -> Files:
        """The payload files: their cache, and downloads to a directory."""
        return Files(self.config, self.setting)

    @property
    def writes(self) -> Writes:
        """The methods that change what the service stores. Raises `InputError` if a snapshot is read."""
        return Writes(self.transport)

    @property
    def requests(self) -> Requests:
        """The methods that propose writes, and decide on proposed ones. Raises `InputError` if a snapshot is read."""
        return Requests(self.transport)

    @property
    def mode(self) -> str:
        """How ends of intervals are written: `continuous` (exclusive) or `discrete` (inclusive)."""
        return str(self.setting("CDB_IOV_MODE"))

    def tags(self) -> list[Item]:
        """All global tags, by name: name, author, status, counts, revision and times of each."""
        return sorted(self.source.tags(), key=lambda item: str(item["name"]))

    def types(self) -> list[Item]:
        """All payload types."""
        return self.source.types()

    def statuses(self) -> list[Item]:
        """All statuses that a global tag can have."""
        return self.source.statuses()

    def setting(self, name: str) -> Any:
        """A public setting of the service, for example CDB_PAYLOAD_BASE_URL."""
        return self.source.setting(name)

    def whoami(self) -> Item:
        """Who the service takes the user for, and what this user may do."""
        return cast(Item, self.transport.get("whoami", identifies=True).json())

    def changes(self, after: str = "0", *, limit: int = 100) -> Item:
        """The changes of all tags by the next `limit` writes after a cursor; `"now"` is the cursor of the present.

        `cursor` is the next `after`. If there is not `more`, wait for some seconds. `lost` says that the service has lost changes
        up to this cursor.
        """
        query = [("after", after), ("limit", str(limit))]
        return cast(Item, self.transport.get("changes", query, about="changes").json())

    def uses(
        self, *, url: str | None = None, prefix: str | None = None, checksum: str | None = None, removed: bool = False
    ) -> list[Item]:
        """The payload IOVs with a URL, with a beginning of URLs or with a checksum; with `removed` also uses that have ended."""
        given = {"payload_url": url, "url_prefix": prefix, "checksum": checksum}
        query = [(name, value) for name, value in given.items() if value is not None]
        if len(query) != 1:
            raise InputError("Uses are found by one of url, prefix and checksum.")
        query += [("removed", "1")] if removed else []
        return cast(list[Item], self.transport.get("payload-iovs/uses", query, about=query[0][1], is_slow=True).json())

    def tag(self, *names: str) -> Tag:
        """A global tag. With several names, the first tag with a payload IOV that is valid at a moment decides."""
        if not names or not all(isinstance(name, str) and name and "\\ud" not in ascii(name) for name in names):
            raise InputError("A global tag needs a name, in UTF-8.")
        return Tag(self, names, (None,) * len(names))

    def check_types(self, names: Iterable[str]) -> None:
        """Raise `NotFoundError` if one of these payload types does not exist."""
        if not self._known_types.issuperset(names):
            self._known_types = frozenset(str(item["name"]) for item in self.types())
            for name in names:
                if name not in self._known_types:
                    raise NotFoundError(f"There is no payload type {name!r} ({self.source.name}).")
