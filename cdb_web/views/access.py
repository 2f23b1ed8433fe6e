"""Logging in and out; the access rules, those that apply to a tag, and the tokens of this service, for administrators."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.db.models import OuterRef, Subquery
from django.db.models.fields.json import KT
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.http import urlencode

from cdb_rest.access import issuers
from cdb_rest.access.authentication import principal_of
from cdb_rest.access.memory import check_logins
from cdb_rest.access.rules import Rules
from cdb_rest.analysis import access_rules
from cdb_rest.models import AccessChange, AccessRule, ApiToken, RuleKind
from cdb_rest.parsing.parameters import parse_number
from cdb_rest.rules.access import ANY, MEANINGS, Permission, Principal, Role, escaped
from cdb_rest.rules.errors import AccessRuleNotFoundError, TokenNotFoundError, existing, invalid_field
from cdb_rest.writes import access as service
from cdb_web.page import administers, form_page, require_administrator, show, store_or_show
from cdb_web.writes import find_tag


class _Login(LoginView):
    """A form for name and password; after many wrong passwords, a page with status 429. It redirects only to this service."""

    def post(self, request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        check_logins(request)
        return super().post(request, *arguments, **named)

    def render_to_response(self, context: dict[str, Any], **_named: Any) -> HttpResponse:
        form = context["form"]
        problem = " ".join(form.non_field_errors() or (["Fill in both fields."] if form.errors else []))
        values = {"next": context["next"], "name": form["username"].value() or "", "problem": problem}
        return show(self.request, "login.html", values | {"may_log_in": False})


log_in = form_page(_Login.as_view())


@form_page
def log_out(request: HttpRequest) -> HttpResponse:
    """A form that ends the session of this service. A session at an identity provider continues."""
    if request.method != "POST":
        return show(request, "log_out.html", {})
    logout(request)
    return HttpResponseRedirect("/", status=303)


LABELS = ("Global tags", "Payload types")
# The kinds of rules, and what the field "Who" has for them.
KINDS = {
    RuleKind.USER: "user",
    RuleKind.GROUP: "members of a group",
    RuleKind.TOKEN: "token of this service",
    RuleKind.NETWORK: "network, such as 10.1.0.0/16",
    RuleKind.CLAIM: "claim of an identity provider",
}
# The lifetimes of a token that can be chosen, in days.
LIFETIMES = {"30": "30 days", "90": "90 days", "365": "a year", "": "never"}


@form_page
def access(request: HttpRequest) -> HttpResponse:
    """What the reader may do; for administrators, all rules with forms that grant and revoke."""
    values = {"permissions": principal_of(request.META).permissions}
    return _rules(request, "access.html", values, AccessRule.objects.order_by("id"))


@form_page
def tag_access(request: HttpRequest, name: str) -> HttpResponse:
    """What the reader may do with a tag; for administrators, the rules that apply to it, with forms that grant and revoke."""
    tag = find_tag(name)
    status, principal = tag.status.name, principal_of(request.META)

    def applies(permission: Permission) -> bool:
        return permission.covers(Role.READER, name, None)

    values: dict[str, Any] = {
        "name": name,
        "tag": tag,
        "may": [
            (permission, access_rules.permitted(permission, name, status))
            for permission in principal.permissions
            if applies(permission)
        ],
    }
    rules = [rule for rule in AccessRule.objects.order_by("id") if applies(access_rules.permission_of(rule))]
    return _rules(request, "tag_access.html", values, rules)


def _rules(request: HttpRequest, template: str, values: dict[str, Any], rules: Iterable[AccessRule]) -> HttpResponse:
    """The page with the rules, or the response to a form that previews or makes a rule, or deletes one."""
    principal, tag = principal_of(request.META), values.get("tag")
    values["form"] = {
        "kind": RuleKind.USER,
        "role": str(Role.CONTRIBUTOR),
        "tags": escaped(tag.name) if tag else ANY,
        "types": ANY,
    }
    values |= {
        "kinds": KINDS,
        "roles": MEANINGS,
        "issuers": [one.name for one in issuers.configured()],
        "writes_are_open": bool(settings.CDB_OPEN_WRITES),
        "reads_are_open": settings.CDB_ANONYMOUS_READS,
    }

    def store() -> str | None:
        actor = require_administrator(request).name
        if request.POST.get("action") == "revoke":
            rule = service.revoke(actor=actor, rule_id=parse_number("rule", request.POST.get("rule")))
            return f"?{urlencode({'revoked': rule.id})}"
        values["form"] = form = {field: request.POST.get(field, "").strip() for field in service.RULE_FIELDS}
        if form["issuer"]:
            issuers.check_name(form["issuer"])
        if "confirmed" in request.POST:
            rule, is_new = service.grant(actor=actor, **form)
            return f"?{urlencode({'granted' if is_new else 'found': rule.id})}"
        service.check_rule(form)
        values["preview"] = access_rules.described(AccessRule(**form))[1:]
        values["matched"] = list(access_rules.matched_now(form["tags"], form["types"], LABELS))
        return None

    if administers(principal):
        values["rules"] = [(rule, access_rules.described(rule), _actions(rule, tag)) for rule in rules]
        values["superusers"] = User.objects.filter(is_superuser=True, is_active=True).order_by("username")
        if "revoke" in request.GET:
            values |= _revocation(principal, rules, parse_number("revoke", request.GET["revoke"]))
    return store_or_show(request, template, values, store)


def _revocation(principal: Principal, rules: Iterable[AccessRule], number: int) -> dict[str, Any]:
    """What is shown before a rule is deleted; also whether the reader would no longer be an administrator."""
    rule = existing(next((one for one in rules if one.id == number), None), AccessRuleNotFoundError(number))
    left = tuple(one for one in principal.permissions if one.rule != str(rule))
    return {"revoking": access_rules.described(rule), "loses": not administers(Principal(permissions=left))}


def _actions(rule: AccessRule, tag: Any) -> list[str]:
    return access_rules.permitted(access_rules.permission_of(rule), tag.name, tag.status.name) if tag else []


@form_page
def tokens(request: HttpRequest) -> HttpResponse:
    """The tokens that the reader has created, or all, with forms that create one and make one invalid.

    The text of a new token is in the response to the form only, which nothing may store.
    """
    principal = principal_of(request.META)
    form = {"name": "", "role": str(Role.CONTRIBUTOR), "tags": ANY, "types": ANY, "days": "90", "comment": ""}
    values: dict[str, Any] = {"form": form, "roles": MEANINGS, "lifetimes": LIFETIMES, "all": "all" in request.GET}

    def store() -> str | None:
        actor = require_administrator(request).name
        if request.POST.get("action") == "revoke":
            revoked = service.revoke_token(actor=actor, name=request.POST.get("name", ""))
            return f"?{urlencode({'revoked': revoked.name})}"
        values["form"] = given = {field: request.POST.get(field, "").strip() for field in form}
        if given["days"] not in LIFETIMES:
            raise invalid_field("days", f"days must be one of 30, 90, 365 or nothing (got {given['days']}).")
        fields = {name: text for name, text in given.items() if name != "days"}
        lifetime = timedelta(days=int(given["days"])) if given["days"] else None
        values["text"], values["created"] = service.create_token(actor=actor, lifetime=lifetime, **fields)
        values["matched"] = list(access_rules.matched_now(given["tags"], given["types"], LABELS))
        return None

    if administers(principal):
        if "revoke" in request.GET:
            values["revoking"] = ApiToken.objects.filter(name=request.GET["revoke"], revoked=None).first()
            if values["revoking"] is None:
                raise TokenNotFoundError(request.GET["revoke"])
        # They are read after the form was stored.
        values["tokens"] = lambda: _tokens(None if values["all"] else principal.name)
    response = store_or_show(request, "tokens.html", values, store)
    response["Cache-Control"] = "no-store"
    return response


def _tokens(creator: str | None) -> list[tuple[ApiToken, str, tuple[Permission, ...]]]:
    """Tokens, the newest first, with their state and their permissions: those that `creator` has created, or all."""
    made = AccessChange.objects.filter(action="create_token").annotate(token=KT("detail__name"))
    creator_of = Subquery(made.filter(token=OuterRef("name")).values("actor")[:1])
    found = ApiToken.objects.annotate(creator=creator_of).order_by("-id")
    rules = Rules(tuple(AccessRule.objects.filter(kind=RuleKind.TOKEN).order_by("id")), {})
    return [
        (token, _state(token), rules.of_token(token.name))
        for token in (found if creator is None else found.filter(creator=creator))
    ]


def _state(token: ApiToken) -> str:
    if token.revoked is not None:
        return "revoked"
    return "expired" if token.expires is not None and token.expires <= timezone.now() else "valid"
