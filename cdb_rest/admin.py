"""Django's admin: accounts, access rules, revocation of tokens, and read-only views of the change log and of `AccessChange`.

Global tags cannot be changed here, because only the write services enforce the rules for statuses and intervals.
"""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from cdb_rest.access.issuers import check_name
from cdb_rest.models import AccessChange, AccessRule, ApiToken, GlobalTagChange
from cdb_rest.rules.errors import InvalidInputError
from cdb_rest.writes import access

admin.site.site_header = admin.site.site_title = "cdb"

if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
    UserAdminBase = UserAdmin[User]
    RuleFormBase = forms.ModelForm[AccessRule]
else:
    # The classes are generic in their type stubs only.
    AnyAdmin, UserAdminBase, RuleFormBase = admin.ModelAdmin, UserAdmin, forms.ModelForm


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


class ReadOnlyAdmin(AnyAdmin):
    """Base class of admin pages on which rows cannot be added, edited or deleted. Subclasses may define actions."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class RuleForm(RuleFormBase):
    """The form of an access rule. It applies `check_rule`, and checks that the issuer is configured."""

    class Meta:
        model = AccessRule
        fields = access.RULE_FIELDS
        help_texts = {
            "issuer": "The name of the issuer in the file of issuers. Only for claims.",
            "claim": "The name of the claim, such as wlcg.groups. Only for claims.",
            "subject": (
                "A regular expression that must match the whole name of the user, group or token, or the whole value of "
                "the claim. For networks an address, such as 10.1.0.0/16."
            ),
            "identity": "The name that the change log shows for clients of this network. Only for networks.",
            "tags": "A regular expression that must match the whole name of the global tag.",
            "types": "A regular expression that must match the whole name of the payload type.",
        }

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                access.check_rule(values)
                if values["issuer"]:
                    check_name(values["issuer"])
            except InvalidInputError as error:
                raise ValidationError(dict(error.fields)) from error
        return values


@admin.register(AccessRule)
class AccessRuleAdmin(AnyAdmin):
    """Access rules. Each change is recorded."""

    form = RuleForm
    list_display = ("id", *access.RULE_FIELDS)
    list_filter = ("kind", "role")
    search_fields = ("subject", "identity", "tags", "comment")
    ordering = ("id",)

    def save_model(self, request: HttpRequest, obj: AccessRule, form: Any, change: bool) -> None:
        access.change_rule(actor=_actor(request), rule=obj)

    def delete_model(self, request: HttpRequest, obj: AccessRule) -> None:
        access.revoke(actor=_actor(request), rule_id=obj.id)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[AccessRule]) -> None:
        for rule in queryset:
            self.delete_model(request, rule)


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    """The tokens of this service, which can be revoked here.

    `manage.py token create` creates a token and prints it once.
    """

    list_display = ("name", "created", "expires", "revoked", "last_used")
    exclude = ("digest",)
    search_fields = ("name",)
    ordering = ("id",)
    actions = ("revoke_tokens",)

    @admin.action(description="Revoke the selected tokens", permissions=["delete_token"])
    def revoke_tokens(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        """Make the selected tokens invalid."""
        for token in queryset:
            access.revoke_token(actor=_actor(request), name=token.name)

    def has_delete_token_permission(self, request: HttpRequest) -> bool:
        """Whether the user may revoke tokens. This requires Django's model permission `cdb_rest.delete_apitoken`."""
        return request.user.has_perm("cdb_rest.delete_apitoken")


@admin.register(AccessChange)
class AccessChangeAdmin(ReadOnlyAdmin):
    """The recorded changes of access rules and tokens (`AccessChange`)."""

    list_display = ("created", "actor", "action", "detail")
    list_filter = ("action", "created")
    search_fields = ("actor",)
    ordering = ("-id",)
    show_full_result_count = False


def _actor(request: HttpRequest) -> str:
    return request.user.get_username()


@admin.register(GlobalTagChange)
class GlobalTagChangeAdmin(ReadOnlyAdmin):
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
