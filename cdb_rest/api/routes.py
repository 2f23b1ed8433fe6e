"""Every route of the API: the path that existing clients use, its readable alias where there is one, the view of both."""

from django.conf import settings as configuration
from django.urls import URLPattern, path
from rest_framework.views import APIView

from cdb_rest.api.views import (
    changes,
    export,
    global_tags,
    inserting,
    lookup,
    payload_iovs,
    payload_lists,
    payload_types,
    settings,
    strategies,
)
from cdb_rest.strategies.registry import STRATEGIES

Routes = tuple[tuple[type[APIView], tuple[str, ...]], ...]

# In the order of use, in which the API's description has them.
ROUTES: Routes = (
    (lookup.LookupView, ("payloadiovs/", "payload-iovs/query/")),
    (global_tags.GlobalTagCollectionView, ("global-tags",)),
    (global_tags.GlobalTagListView, ("globalTags",)),
    (global_tags.GlobalTagByNameView, ("globalTag/<str:name>", "global-tags/<str:name>")),
    (
        global_tags.PayloadListsOfGlobalTagView,
        ("gtPayloadLists/<str:name>", "global-tags/<str:name>/payload-lists"),
    ),
    (
        global_tags.GlobalTagCloneView,
        ("cloneGlobalTag/<str:source>/<str:target>", "global-tags/<str:source>/clone/<str:target>"),
    ),
    (
        global_tags.GlobalTagStatusChangeView,
        ("gt_change_status/<str:name>/<str:status>", "global-tags/<str:name>/change-status/<str:status>"),
    ),
    (global_tags.GlobalTagDeleteView, ("deleteGlobalTag/<str:name>", "global-tags/<str:name>/delete")),
    (global_tags.GlobalTagStatusListView, ("gtstatus", "global-tags/statuses")),
    (global_tags.NestedGlobalTagListView, ("gt",)),
    (global_tags.GlobalTagByIdView, ("gt/<str:tag_id>",)),
    (payload_types.PayloadTypeListView, ("pt", "payload-types")),
    (payload_types.PayloadTypeDeleteView, ("deletePayloadType/<str:name>", "payload-types/<str:name>/delete")),
    (payload_lists.PayloadListListView, ("pl", "payload-lists")),
    (payload_lists.PayloadListAttachView, ("pl_attach", "payload-lists/attach")),
    (payload_lists.PayloadListByNameView, ("payload-lists/by-name/<str:name>",)),
    (payload_lists.PayloadListByIdView, ("pl/<str:list_id>", "payload-lists/<str:list_id>")),
    (payload_lists.PayloadListDeleteView, ("deletePayloadList/<str:name>", "payload-lists/<str:name>/delete")),
    (payload_iovs.PayloadIOVListView, ("piov", "payload-iovs")),
    (payload_iovs.PayloadIOVAttachView, ("piov_attach", "payload-iovs/attach")),
    (payload_iovs.PayloadIOVByIdView, ("piov/<str:iov_id>", "payload-iovs/<str:iov_id>")),
    (
        payload_iovs.PayloadIOVDeleteView,
        (
            "deletePayloadIOV/<str:global_tag>/<str:payload_type>/<str:major>/<str:minor>",
            "payload-iovs/<str:global_tag>/<str:payload_type>/<str:major>/<str:minor>/delete",
            "deletePayloadIOV/<str:global_tag>/<str:payload_type>/<str:major>/<str:minor>"
            "/<str:major_end>/<str:minor_end>",
            "payload-iovs/<str:global_tag>/<str:payload_type>/<str:major>/<str:minor>"
            "/<str:major_end>/<str:minor_end>/delete",
        ),
    ),
    (inserting.PayloadIOVInsertView, ("payload-iovs/insert",)),
    (inserting.PayloadIOVBulkView, ("bulk_piov", "payload-iovs/bulk")),
    (changes.ChangeListView, ("global-tags/<str:name>/changes",)),
    (changes.ChangeView, ("global-tags/<str:name>/changes/<str:revision>",)),
    (export.ExportView, ("global-tags/<str:name>/export",)),
    (settings.PublicSettingView, ("user_settings/<str:name>", "settings/<str:name>")),
)

# Other ways to answer a lookup, to compare with; served only where the settings ask for them.
STRATEGY_ROUTES: Routes = (
    (strategies.StrategyListView, ("payloadiovs_strategies/",)),
    *((strategies.view_of(strategy), (strategies.route_of(strategy),)) for strategy in STRATEGIES.values()),
)


def served_routes() -> Routes:
    """The routes that the settings ask for."""
    return ROUTES + STRATEGY_ROUTES if configuration.CDB_STRATEGIES else ROUTES


def spellings(view: type[APIView]) -> list[str]:
    """The paths of a view, each with and without its trailing slash, because clients follow no redirects."""
    (paths,) = (paths for one, paths in ROUTES + STRATEGY_ROUTES if one is view)
    return [spelling for path in paths for spelling in (path.rstrip("/"), path.rstrip("/") + "/")]


def patterns(routes: Routes) -> list[URLPattern]:
    """The routes as Django takes them. Fixed paths come first: `payload-iovs/insert` is no IOV's id."""
    spelt = [(spelling, view) for view, _ in routes for spelling in spellings(view)]
    return [path(spelling, view.as_view()) for spelling, view in sorted(spelt, key=lambda one: "<" in one[0])]


urlpatterns = patterns(served_routes())
