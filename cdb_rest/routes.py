"""The table of the API's routes: paths, view, pool, caching, query budget and required roles of each.

Everything else derives from it: Django's URL patterns (`cdb_rest/api/urls.py`), the roles that requests need
(`cdb_rest/api/base/authorization.py`), the pools of nginx (`cdb/serving/nginx.py`), the OpenAPI description,
and tests of the API and of nginx. It does not import Django, so that nginx can be configured without the application.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from cdb_rest.rules.access import Role


class Pool(StrEnum):
    """Which server nginx chooses for GET and HEAD: granian for lookups, gunicorn for everything else.

    All other methods, and requests with a body, go to gunicorn, too. nginx limits the number of heavy reads.
    """

    LOOKUPS = "lookups"
    # Lookups with the parameter `light`: a global tag with counts. Otherwise heavy: a tag with all its IOVs.
    LOOKUPS_IF_LIGHT = "tag"
    READS = "reads"
    # Heavy without the parameter `page`: a whole table.
    HEAVY_IF_WHOLE = "list"
    HEAVY = "heavy"


class Hot(StrEnum):
    """A read that is answered without Django, because jobs send it very often."""

    LOOKUP = "lookup"
    GLOBAL_TAGS = "globalTags"
    # Only with the parameter `light`.
    GLOBAL_TAG = "globalTag"
    PAYLOAD_LISTS = "gtPayloadLists"
    STATUSES = "gtstatus"
    PAYLOAD_TYPES = "pt"
    SETTING = "user_settings"


class Pin(StrEnum):
    """What a pinned address (`cdb_rest/wsgi/pinned.py`) serves at a route."""

    # The pinned state. The route must know the parameters `rev` and `at`; a name in its path must be that of a global tag.
    STATE = "state"
    # The same as an array of tag items, with the pinned tag only.
    GLOBAL_TAGS = "globalTags"
    # The present, which is the same for all global tags.
    PRESENT = "present"


@dataclass(frozen=True, slots=True)
class Route:
    """One row of the table.

    `view` is the name "module.Class" of the view in `cdb_rest.api`, or the class itself. `paths` are relative to
    `/api/cdb_rest/`. If existing clients have a path for the view, it is the first one. Each path is served with and
    without its trailing slash. `is_cached` lets nginx store responses that have an ETag. `hot` is the read that a plain GET
    is. `pin` is what a pinned address serves here, if anything. `queries` are the numbers of SQL statements of a GET, by query
    string; tests check them.

    `writes` is the least role that a write needs, or None if the view has no writes. The services check the role again,
    or a higher one, for the tags and payload types of the request. With the role reader, every client with a token or a login may
    write, also without a role as long as `CDB_ANONYMOUS_READS` is on. If `CDB_ANONYMOUS_READS` is off, a read needs the
    role reader, unless the route `is_public`. If there are `reads_by_post`, POST is a read whose parameters are in the
    body. They are the largest numbers of SQL statements of a POST, by body; tests check them, too.
    """

    view: str | type[Any]
    paths: tuple[str, ...]
    pool: Pool = Pool.READS
    is_cached: bool = False
    hot: Hot | None = None
    pin: Pin | None = None
    queries: Mapping[str, int] = field(default_factory=dict)
    writes: Role | None = None
    is_public: bool = False
    reads_by_post: Mapping[str, int] = field(default_factory=dict)

    @property
    def spellings(self) -> list[str]:
        """Each path with and without its trailing slash, because clients follow no redirects."""
        return [spelling for path in self.paths for spelling in (path.rstrip("/"), path.rstrip("/") + "/")]


# The query string of a lookup in the tests of query budgets.
MOMENT = "gtName=tag0&majorIOV=1&minorIOV=0"
# That of the IOVs that start in a range.
RANGE = "gtName=tag0&startMajorIOV=0&startMinorIOV=0&endMajorIOV=-1&endMinorIOV=-1"

# In the order of the API documentation.
ROUTES = (
    Route(
        "lookup.LookupView", ("payloadiovs/", "payload-iovs/query/"),
        pool=Pool.LOOKUPS, is_cached=True, hot=Hot.LOOKUP, pin=Pin.STATE,
        queries={MOMENT: 1, f"{MOMENT}&payloadType=Type0": 1, f"{MOMENT}&rev=2": 1, f"{MOMENT}&gtName=tag0": 5},
        # For one moment; each further one may add a statement.
        reads_by_post={'{"gtName": "tag0", "moments": [[1, 0]]}': 10},
    ),
    Route(
        "lookup.IOVLookupView", ("payloadiovs_orm_max/", "payloadiovs_orm_orderby/"), queries={MOMENT: 6},
    ),
    Route(
        "global_tags.GlobalTagCollectionView", ("global-tags",),
        pool=Pool.LOOKUPS, is_cached=True, hot=Hot.GLOBAL_TAGS, pin=Pin.GLOBAL_TAGS,
        queries={"": 1}, writes=Role.MANAGER,
    ),
    Route(
        "global_tags.GlobalTagListView", ("globalTags",), pool=Pool.LOOKUPS, is_cached=True, hot=Hot.GLOBAL_TAGS,
        pin=Pin.GLOBAL_TAGS, queries={"": 1, "page=1&search=tag&sort=name&status=unlocked": 5},
    ),
    Route(
        "global_tags.GlobalTagByNameView", ("globalTag/<str:name>", "global-tags/<str:name>"),
        pool=Pool.LOOKUPS_IF_LIGHT, is_cached=True, hot=Hot.GLOBAL_TAG, pin=Pin.STATE,
        queries={"": 7, "light": 1, "rev=2": 8, "light&rev=2": 6},
    ),
    Route(
        "global_tags.PayloadListsOfGlobalTagView", ("gtPayloadLists/<str:name>", "global-tags/<str:name>/payload-lists"),
        pool=Pool.LOOKUPS, is_cached=True, hot=Hot.PAYLOAD_LISTS, pin=Pin.STATE, queries={"": 1, "rev=2": 5},
    ),
    Route(
        "global_tags.GlobalTagCloneView",
        ("cloneGlobalTag/<str:source>/<str:target>", "global-tags/<str:source>/clone/<str:target>"),
        writes=Role.MANAGER,
    ),
    Route(
        "global_tags.GlobalTagStatusChangeView",
        ("gt_change_status/<str:name>/<str:status>", "global-tags/<str:name>/change-status/<str:status>"),
        writes=Role.MANAGER,
    ),
    Route(
        "descriptions.GlobalTagDescriptionView", ("global-tags/<str:name>/description",), queries={"": 1}, writes=Role.MANAGER,
    ),
    Route("descriptions.GlobalTagLimitsView", ("global-tags/<str:name>/limits",), queries={"": 1}, writes=Role.MANAGER),
    Route(
        "global_tags.GlobalTagDeleteView", ("deleteGlobalTag/<str:name>", "global-tags/<str:name>/delete"),
        writes=Role.MANAGER,
    ),
    Route(
        "global_tags.GlobalTagStatusListView", ("gtstatus", "global-tags/statuses"),
        pool=Pool.LOOKUPS, is_cached=True, hot=Hot.STATUSES, pin=Pin.PRESENT, queries={"": 1}, writes=Role.MANAGER,
    ),
    Route(
        "global_tags.GlobalTagStatusDeleteView",
        ("deleteGlobalTagStatus/<str:name>", "global-tags/statuses/<str:name>/delete"),
        writes=Role.MANAGER,
    ),
    Route(
        "global_tags.NestedGlobalTagListView", ("gt",), pool=Pool.HEAVY_IF_WHOLE, queries={"": 7, "page=1": 5},
        writes=Role.MANAGER,
    ),
    Route("global_tags.GlobalTagByIdView", ("gt/<str:tag_id>",), pool=Pool.HEAVY, queries={"": 7}),
    Route(
        "payload_types.PayloadTypeListView", ("pt", "payload-types"),
        pool=Pool.LOOKUPS, is_cached=True, hot=Hot.PAYLOAD_TYPES, pin=Pin.PRESENT,
        queries={"": 1, "page=1": 5}, writes=Role.CONTRIBUTOR,
    ),
    Route(
        "descriptions.PayloadTypeDescriptionView", ("payload-types/<str:name>/description",), queries={"": 1},
        writes=Role.MANAGER,
    ),
    Route("descriptions.PayloadTypeChangeListView", ("payload-types/<str:name>/changes",), queries={"": 6}),
    Route(
        "payload_types.PayloadTypeDeleteView", ("deletePayloadType/<str:name>", "payload-types/<str:name>/delete"),
        writes=Role.MANAGER,
    ),
    Route(
        "payload_lists.PayloadListListView", ("pl", "payload-lists"), pool=Pool.HEAVY_IF_WHOLE,
        queries={"": 6, "page=1&global_tag=tag0": 5}, writes=Role.CONTRIBUTOR,
    ),
    Route("payload_lists.PayloadListAttachView", ("pl_attach", "payload-lists/attach"), writes=Role.CONTRIBUTOR),
    Route("payload_lists.PayloadListByNameView", ("payload-lists/by-name/<str:name>",), queries={"": 1}),
    Route(
        "payload_lists.PayloadListByIdView", ("pl/<str:list_id>", "payload-lists/<str:list_id>"), pool=Pool.HEAVY,
        queries={"": 6},
    ),
    Route(
        "payload_lists.PayloadListDeleteView", ("deletePayloadList/<str:name>", "payload-lists/<str:name>/delete"),
        writes=Role.MANAGER,
    ),
    Route(
        "payload_iovs.PayloadIOVListView", ("piov", "payload-iovs"), pool=Pool.HEAVY_IF_WHOLE,
        queries={"": 4, "page=1": 6, "page=1&payload_list={list_name}": 6},
        writes=Role.CONTRIBUTOR,
    ),
    Route(
        "ranges.PayloadIOVRangeView", ("payloadiovsrange/", "payload-iovs/starts/"), pool=Pool.HEAVY,
        pin=Pin.STATE, queries={RANGE: 7, f"{RANGE}&rev=2": 6},
    ),
    Route(
        "ranges.ValidPayloadIOVView", ("payload-iovs/range",), pool=Pool.HEAVY,
        pin=Pin.STATE, queries={"gtName=tag0": 8, "gtName=tag0&payload_type=Type0&rev=2": 7},
    ),
    Route("payload_iovs.PayloadIOVAttachView", ("piov_attach", "payload-iovs/attach"), writes=Role.CONTRIBUTOR),
    Route("payload_iovs.PayloadIOVByIdView", ("piov/<str:iov_id>", "payload-iovs/<str:iov_id>"), queries={"": 1}),
    Route(
        "payload_iovs.PayloadIOVDeleteView",
        (
            "deletePayloadIOV/<str:global_tag>/<str:payload_type>/<str:major>/<str:minor>",
            "payload-iovs/<str:global_tag>/<str:payload_type>/<str:major>/<str:minor>/delete",
            "deletePayloadIOV/<str:global_tag>/<str:payload_type>/<str:major>/<str:minor>"
            "/<str:major_end>/<str:minor_end>",
            "payload-iovs/<str:global_tag>/<str:payload_type>/<str:major>/<str:minor>"
            "/<str:major_end>/<str:minor_end>/delete",
        ),
        writes=Role.MANAGER,
    ),
    Route("clearing.PayloadIOVClearView", ("payload-iovs/clear",), writes=Role.MANAGER),
    Route("insertions.PayloadIOVInsertView", ("payload-iovs/insert",), writes=Role.CONTRIBUTOR),
    Route("insertions.PayloadIOVBulkView", ("bulk_piov", "payload-iovs/bulk"), writes=Role.CONTRIBUTOR),
    Route("imports.GlobalTagImportView", ("global-tags/<str:name>/import",), writes=Role.CONTRIBUTOR),
    Route("feed.ChangeFeedView", ("changes",), queries={"": 9, "after=now": 2, "after=1&limit=1": 4}),
    Route("changes.ChangeListView", ("global-tags/<str:name>/changes",), queries={"": 6}),
    Route("changes.ChangeView", ("global-tags/<str:name>/changes/<str:revision>",), pool=Pool.HEAVY, queries={"": 8}),
    Route(
        "requests.ChangeRequestListView", ("requests",), queries={"": 5, "state=open&search=why": 5}, writes=Role.READER,
    ),
    Route("requests.ChangeRequestView", ("requests/<str:number>",), queries={"": 3}),
    Route("requests.ChangeRequestAcceptView", ("requests/<str:number>/accept",), writes=Role.CONTRIBUTOR),
    Route("requests.ChangeRequestRejectView", ("requests/<str:number>/reject",), writes=Role.CONTRIBUTOR),
    Route("requests.ChangeRequestWithdrawView", ("requests/<str:number>/withdraw",), writes=Role.READER),
    Route("requests.ChangeRequestCommentView", ("requests/<str:number>/comments",), writes=Role.READER),
    Route("reverting.ChangeUndoView", ("global-tags/<str:name>/changes/<str:revision>/undo",), writes=Role.CONTRIBUTOR),
    Route("reverting.GlobalTagRevertView", ("global-tags/<str:name>/revert",), writes=Role.MANAGER),
    Route(
        "export.ExportView", ("global-tags/<str:name>/export",), pool=Pool.HEAVY,
        pin=Pin.STATE, queries={"": 6, "payload_type=Type0&format=jsonl": 7, "rev=2": 6, "payload_type=Type0&rev=2": 6},
    ),
    Route(
        "comparison.DifferencesView", ("global-tags/<str:a>/diff/<str:b>",), pool=Pool.HEAVY,
        queries={"": 8, "summary=1": 8, "rev_a=2": 9},
    ),
    Route(
        "comparison.AffectedView", ("global-tags/<str:name>/affected",),
        reads_by_post={'{"to": {"tag": "tag1"}}': 9, '{"from_rev": 2, "to": {"tag": "tag1"}, "moments": [[1, 0]]}': 10},
    ),
    Route(
        "analysis.CoverageView", ("global-tags/<str:name>/coverage",), pool=Pool.HEAVY,
        pin=Pin.STATE, queries={"": 7, "rev=2&payload_type=Type0": 8},
    ),
    Route(
        "analysis.UsesView", ("payload-iovs/uses",), pool=Pool.HEAVY,
        queries={"payload_url=u": 5, "checksum=a&removed=1": 5},
    ),
    Route("analysis.ExplanationView", ("payload-iovs/explain",), pin=Pin.STATE, queries={MOMENT: 9, f"{MOMENT}&rev=2": 8}),
    Route(
        "service.PublicSettingView", ("user_settings/<str:name>", "settings/<str:name>"),
        pool=Pool.LOOKUPS, hot=Hot.SETTING, pin=Pin.PRESENT, queries={"": 0},
    ),
    Route("identity.WhoAmIView", ("whoami",), is_public=True, queries={"": 0}),
)  # fmt: skip
