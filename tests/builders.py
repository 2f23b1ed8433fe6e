"""Rows for tests, inserted into the tables directly."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cdb_rest.models import GlobalTag, GlobalTagStatus, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.moment import OPEN


def make_statuses() -> None:
    """The statuses of the migration, which tests with real transactions wipe out at their end."""
    for name in ("unlocked", "locked", "frozen"):
        GlobalTagStatus.objects.get_or_create(name=name)


@contextmanager
def emptied() -> Iterator[None]:
    """After the block, all tags, lists and IOVs are deleted: for an example of hypothesis, which has no fixture of its own."""
    try:
        yield
    finally:
        PayloadIOV.objects.all().delete()
        PayloadList.objects.all().delete()
        GlobalTag.objects.all().delete()


class Builder:
    """Makes objects with as little said as possible."""

    def tag(self, name: str = "tag", status: str = "unlocked") -> GlobalTag:
        return GlobalTag.objects.create(name=name, status=GlobalTagStatus.objects.get(name=status))

    def list(self, tag: GlobalTag | None = None, payload_type: str = "Gain") -> PayloadList:
        kind, _ = PayloadType.objects.get_or_create(name=payload_type)
        made = PayloadList.objects.create(name="unnamed", payload_type=kind, global_tag=tag)
        made.name = f"{payload_type}_{made.id}"
        made.save(update_fields=["name"])
        return made

    def iov(
        self,
        payload_list: PayloadList | None,
        start: tuple[int, int],
        end: tuple[int, int] = (OPEN, OPEN),
        url: str | None = None,
        **columns: Any,
    ) -> PayloadIOV:
        return PayloadIOV.objects.create(
            payload_list=payload_list,
            payload_url=url or f"file_{start[0]}_{start[1]}.root",
            major_iov=start[0],
            minor_iov=start[1],
            major_iov_end=end[0],
            minor_iov_end=end[1],
            **{"checksum": "abc", "size": 1} | columns,
        )
