"""Django's admin with a read-only view of the change log. Tags can be changed only by the API, which enforces the rules."""

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from cdb_rest.models import GlobalTagChange

admin.site.site_header = admin.site.site_title = "cdb"

if TYPE_CHECKING:
    ChangeAdmin = admin.ModelAdmin[GlobalTagChange]
else:
    # The class is generic in its type stubs only.
    ChangeAdmin = admin.ModelAdmin


@admin.register(GlobalTagChange)
class GlobalTagChangeAdmin(ChangeAdmin):
    """The change log: who changed which global tag, when, why and how."""

    list_display = (
        "global_tag",
        "revision",
        "created",
        "actor",
        "action",
        "comment",
        "payload_iovs_before",
        "payload_iovs_after",
    )
    list_filter = ("action", "created")
    search_fields = ("global_tag", "actor", "comment")
    ordering = ("-id",)
    # Counting all rows would be slow.
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[GlobalTagChange]:
        changes = super().get_queryset(request)
        match = request.resolver_match
        is_list = match is not None and (match.url_name or "").endswith("_changelist")
        return changes.defer("before", "after") if is_list else changes

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
