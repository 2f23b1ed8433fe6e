"""The pages of each kind of object: search columns, sort fields and filters."""

from django.db.models import Sum

from cdb_rest.api.documents import ChangeItem, GlobalTagItem, NamedDocument, PayloadIOVDocument, PayloadListItem
from cdb_rest.api.paging import Browser
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, PayloadList, PayloadType

GLOBAL_TAGS = Browser(
    shape=GlobalTagItem,
    rows=GlobalTag.objects.all,
    search=("name", "author", "description"),
    sort={
        "id": "id",
        "name": "name",
        "author": "author",
        "status": "status__name",
        "created": "created",
        "updated": "updated",
        "payload_lists_count": "payload_lists_count",
        "payload_iov_count": "payload_iov_count",
    },
    filters={"status": "status__name"},
)

PAYLOAD_TYPES = Browser(
    shape=NamedDocument,
    rows=PayloadType.objects.all,
    search=("name", "description"),
    sort={"id": "id", "name": "name", "created": "created"},
)

PAYLOAD_LISTS = Browser(
    shape=PayloadListItem,
    rows=PayloadList.objects.all,
    search=("name", "description"),
    sort={
        "id": "id",
        "name": "name",
        "global_tag": "global_tag__name",
        "payload_type": "payload_type__name",
        "iov_count": "iov_count",
        "created": "created",
    },
    filters={"global_tag": "global_tag__name", "payload_type": "payload_type__name"},
)


def _count_iovs(selected: dict[str, str]) -> int:
    """The number of IOVs that the filters select, from the counts stored in the payload lists.

    Without filters, it includes the detached IOVs, for which it counts rows.
    """
    columns = {"payload_list": "name", "global_tag": "global_tag__name", "payload_type": "payload_type__name"}
    lists = PayloadList.objects.filter(**{columns[name]: value for name, value in selected.items()})
    attached = lists.aggregate(total=Sum("iov_count"))["total"] or 0
    return int(attached) + (0 if selected else PayloadIOV.objects.filter(payload_list=None).count())


PAYLOAD_IOVS = Browser(
    shape=PayloadIOVDocument,
    rows=PayloadIOV.objects.all,
    search=("payload_url",),
    sort={
        "id": "id",
        "payload_url": "payload_url",
        "size": "size",
        "comb_iov": "comb_iov",
        "major_iov": "comb_iov",
        "inserted": "created",
    },
    filters={
        "payload_list": "payload_list__name",
        "global_tag": "payload_list__global_tag__name",
        "payload_type": "payload_list__payload_type__name",
    },
    count=_count_iovs,
)

CHANGES = Browser(
    shape=ChangeItem,
    rows=GlobalTagChange.objects.all,
    search=("comment", "actor"),
    sort={"revision": "revision"},
    filters={"action": "action", "actor": "actor"},
    newest_first=True,
)
