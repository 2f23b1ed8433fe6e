"""Django's admin: accounts, groups, and the record of changes of access rules and tokens, which is read-only.

Everything else is changed by the web pages, because only the write services enforce its rules.
"""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest

from cdb_rest.models import AccessChange

admin.site.site_header = admin.site.site_title = "cdb"

if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
    UserAdminBase = UserAdmin[User]
else:
    # The classes are generic in their type stubs only.
    AnyAdmin, UserAdminBase = admin.ModelAdmin, UserAdmin


# The import of Django's own `UserAdmin` has registered it.
admin.site.unregister(User)


@admin.register(User)
class AccountAdmin(UserAdminBase):
    """The accounts. The user name of a person of an identity provider, which has a colon, cannot be changed.

    The form would reject such a name: it may have characters that the names of other accounts must not have.
    """

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = super().get_readonly_fields(request, obj)
        return (*names, "username") if obj is not None and ":" in obj.username else names


@admin.register(AccessChange)
class AccessChangeAdmin(AnyAdmin):
    """The recorded changes of access rules and tokens (`AccessChange`)."""

    list_display = ("created", "actor", "action", "detail")
    list_filter = ("action", "created")
    search_fields = ("actor",)
    ordering = ("-id",)
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
