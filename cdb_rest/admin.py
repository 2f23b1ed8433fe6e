"""Django's admin: the change log to look at. Tags are changed by the API alone, which keeps the rules."""

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from cdb_rest.models import GlobalTagChange

admin.site.site_header = admin.site.site_title = "cdb"


@admin.register(GlobalTagChange)
class GlobalTagChangeAdmin(admin.ModelAdmin):
    """Who changed which tag, when and why, and what exactly."""

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
    # The list does without the rows, which may be many.
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest):
        changes = super().get_queryset(request)
        match = request.resolver_match
        return changes.defer("before", "after") if match and match.url_name.endswith("_changelist") else changes

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
