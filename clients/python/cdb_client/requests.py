"""Requests: proposed writes, which a person with the permission for them accepts or rejects."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from cdb_client.errors import CdbError
from cdb_client.rows import read_rows
from cdb_client.sources import Item
from cdb_client.transport import Transport, pages
from cdb_client.writes import faults


class Requests:
    """Proposes writes, and decides on proposed ones. Each method returns the response of the service.

    With `dry_run`, nothing is stored. The errors are those of `Transport`, among them `RefusedError` and `NotAllowedError`.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def make(self, kind: str, tag: str, document: Mapping[str, Any], *, reason: str, dry_run: bool = False) -> Item:
        """Store a request for a write to a tag.

        The members of the document are, by kind: for `import`, `rows` as in `Writes.import_rows`; for `clear`, `payload_type`,
        `since` and `until`; for `status`, `status`; for `clone`, where `tag` is the new one, `clone_of`; for `undo`, `revision`.
        """
        places: list[str] = []
        if kind == "import":
            mode = self._transport.get("user_settings/CDB_IOV_MODE").json()["CDB_IOV_MODE"]
            numbered = list(read_rows(document["rows"], mode))
            places, document = [place for place, _ in numbered], {**document, "rows": [row for _, row in numbered]}
        body = {"global_tag": tag, "kind": kind, "document": document, "reason": reason, "dry_run": dry_run}
        try:
            return cast(Item, self._transport.write("POST", "requests", body, about=f"tag {tag}"))
        except CdbError as error:
            text = faults(error.document.get("rows"), places)
            raise type(error)(f"{text} (tag {tag})" if text else str(error), error.document) from None

    def list(self, **filters: str | None) -> Iterator[Item]:
        """The requests, newest first. `filters` are state, global_tag, requester, kind, and search in the reason."""
        query = [(name, value) for name, value in filters.items() if value is not None]
        return pages(self._transport, "requests", query, "number")

    def show(self, number: int) -> Item:
        """A request with its document, its comments, and the changes of the tag since then."""
        return cast(Item, self._transport.get(f"requests/{number}", about=f"request {number}", is_slow=True).json())

    def accept(self, number: int, comment: str = "", *, confirm: bool = False, dry_run: bool = False) -> Item:
        """Make the write that is proposed. With `confirm`, it may remove payload IOVs and make gaps."""
        return self._post(number, "accept", comment=comment, confirm=confirm, dry_run=dry_run)

    def reject(self, number: int, comment: str) -> Item:
        """Reject a request. The comment says why."""
        return self._post(number, "reject", comment=comment)

    def withdraw(self, number: int) -> Item:
        """Withdraw a request of one's own."""
        return self._post(number, "withdraw")

    def comment(self, number: int, text: str) -> Item:
        """Add a comment to the discussion of a request."""
        return self._post(number, "comments", text=text)

    def _post(self, number: int, action: str, **body: Any) -> Item:
        return cast(Item, self._transport.write("POST", f"requests/{number}/{action}", body, about=f"request {number}"))
