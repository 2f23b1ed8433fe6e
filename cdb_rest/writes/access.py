"""Write services for access rules and tokens. Every change is recorded as an `AccessChange`.

The services do not check permissions: the caller must ensure that the actor is an administrator. `actor` is only the name
that the record stores. Serving processes apply a change within `REFRESH_SECONDS` (`cdb_rest/access/rules.py`).
"""

import ipaddress
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Model
from django.utils import timezone

from cdb_rest.models import AccessChange, AccessRule, ApiToken, RevokedToken, RuleKind
from cdb_rest.rules.access import ANY, PLACEHOLDERS, Role, check_pattern, digest_of, escaped, new_token, role_of
from cdb_rest.rules.errors import (
    AccessRuleNotFoundError,
    InvalidInputError,
    NameTakenError,
    TokenNotFoundError,
    existing,
    invalid_field,
    quoted,
)
from cdb_rest.rules.names import PROGRAM_NAME_RULE, is_program_name
from cdb_rest.writes.transactions import write

# The fields that describe a rule, in the order of its documents.
RULE_FIELDS = ("kind", "issuer", "claim", "subject", "identity", "role", "tags", "types", "comment")


@write
def grant(*, actor: str, kind: str, subject: str, role: str, comment: str = "", **more: str) -> tuple[AccessRule, bool]:
    """Add a rule, unless a rule exists whose fields other than the comment are equal. That rule is not changed.

    `more` may have `issuer`, `claim`, `identity`, `tags` and `types`. By default, the rule is for all tags and types.
    Returns the rule, and whether it is new. Raises `InvalidInputError`. The caller must check `issuer` with
    `issuers.check_name`.
    """
    values = {"issuer": "", "claim": "", "identity": "", "tags": ANY, "types": ANY} | more
    values |= {"kind": kind, "subject": subject, "role": role}
    check_rule(values | {"comment": comment})
    rule, is_new = AccessRule.objects.get_or_create(**values, defaults={"comment": comment})
    if is_new:
        _record(actor, "grant", rule_document(rule))
    return rule, is_new


@write
def revoke(*, actor: str, rule_id: int) -> AccessRule:
    """Delete a rule. Returns the deleted rule, with its id. Raises `AccessRuleNotFoundError`."""
    rule = existing(AccessRule.objects.select_for_update().filter(id=rule_id).first(), AccessRuleNotFoundError(rule_id))
    _record(actor, "revoke", rule_document(rule))
    rule.delete()
    rule.id = rule_id
    return rule


@write
def create_token(
    *, actor: str, name: str, role: str, tags: str, types: str, lifetime: timedelta | None, comment: str = ""
) -> tuple[str, ApiToken]:
    """Create a token, and a rule that gives it a role. Returns the text of the token and its row.

    Only a digest of the text is stored. `name` must satisfy `PROGRAM_NAME_RULE`. `tags` and `types` are patterns, as in
    `AccessRule`. `lifetime` must be positive; with None, the token does not expire.

    Raises `InvalidInputError`, or `NameTakenError` if a token has this name, even a revoked one.
    """
    if not name or not is_program_name(name):
        raise _invalid("name", f"must be the name of a program. {PROGRAM_NAME_RULE} (got {name!r})")
    _check_length("name", name, ApiToken)
    if ApiToken.objects.filter(name=name).exists():
        # The log names tokens, also those that were revoked, so a name is never used again.
        raise NameTakenError("token")
    token = new_token()
    expires = None if lifetime is None else timezone.now() + lifetime
    row = ApiToken.objects.create(name=name, digest=digest_of(token), expires=expires)
    grant(actor=actor, kind=RuleKind.TOKEN, subject=escaped(name), role=role, tags=tags, types=types, comment=comment)
    _record(actor, "create_token", {"name": name, "expires": _text(expires)})
    return token, row


@write
def revoke_token(*, actor: str, name: str) -> ApiToken:
    """Make a token of this service invalid forever, and return its row, which is kept with the time of revocation.

    If the token is already revoked, nothing changes. The rules for the token are kept. Raises `TokenNotFoundError`.
    """
    token = existing(ApiToken.objects.select_for_update().filter(name=name).first(), TokenNotFoundError(name))
    if token.revoked is None:
        token.revoked = timezone.now()
        token.save(update_fields=["revoked"])
        _record(actor, "revoke_token", {"name": name})
    return token


@write
def revoke_issued_token(*, actor: str, issuer: str, claim: str, value: str) -> None:
    """Make tokens (JWT) of an issuer invalid. `issuer` is its name in the file of issuers.

    With the claim `jti`, `value` is the id of one token. With `sub`, `value` is the subject, by the issuer's setting
    `subject`; its tokens become invalid if they were issued until now, plus the issuer's leeway, or have no `iat`.

    The caller must check the issuer with `issuers.check_name`, and that `claim` is `jti` or `sub`.
    """
    RevokedToken.objects.update_or_create(issuer=issuer, claim=claim, value=value, defaults={"created": timezone.now()})
    _record(actor, "revoke_issued_token", {"issuer": issuer, "claim": claim, "value": value})


def check_rule(values: dict[str, Any]) -> None:
    """Raise `InvalidInputError` unless `values` are the fields of a valid rule.

    `values` must have all of `RULE_FIELDS`; only `comment` is optional. The caller must check the issuer with
    `issuers.check_name`.
    """
    kind = values["kind"]
    if kind not in RuleKind.values:
        raise _invalid("kind", f"must be one of {', '.join(RuleKind.values)} (got {quoted(kind)})")
    role = role_of(values["role"])
    for field, of_kind in (("issuer", RuleKind.CLAIM), ("claim", RuleKind.CLAIM), ("identity", RuleKind.NETWORK)):
        if bool(values[field]) != (kind == of_kind):
            raise _invalid(
                field, f"is required for rules of kind {of_kind}, and only for those (got {values[field]!r})"
            )
    if not values["identity"].isprintable():
        raise _invalid("identity", f"must be a name of printable characters (got {values['identity']!r})")
    if kind == RuleKind.NETWORK:
        _check_network(values["subject"], role)
    else:
        check_pattern("subject", values["subject"])
    for field in RULE_FIELDS:
        _check_length(field, values.get(field, ""), AccessRule)
    for field in ("subject", "tags", "types"):
        if not values[field]:
            raise _invalid(field, "must not be empty")
    for field in ("tags", "types"):
        pattern = values[field]
        for placeholder in PLACEHOLDERS:
            if placeholder in pattern and kind != RuleKind.CLAIM:
                raise _invalid(
                    field, f"can contain {placeholder} only in rules of kind {RuleKind.CLAIM} (got {quoted(pattern)})"
                )
            pattern = pattern.replace(placeholder, "x")
        check_pattern(field, pattern)
    if role == Role.READER and (values["tags"], values["types"]) != (ANY, ANY):
        raise _invalid(
            "tags", f"must be {ANY} for the role reader, which reads everything (got {quoted(values['tags'])})"
        )


def rule_document(rule: AccessRule) -> dict[str, Any]:
    """A rule as a dictionary for `AccessChange.detail`: its id, and all of `RULE_FIELDS` as texts."""
    return {"id": rule.id} | {field: str(getattr(rule, field)) for field in RULE_FIELDS}


def _check_length(field: str, text: str, model: type[Model]) -> None:
    most = model._meta.get_field(field).max_length  # type: ignore[union-attr]
    if most is not None and len(text) > most:
        raise _invalid(field, f"must have at most {most} characters (got {len(text)})")


def _check_network(address: str, role: Role) -> None:
    try:
        ipaddress.ip_network(address)
    except ValueError as error:
        raise _invalid("subject", f"must be a network such as 10.1.0.0/16 ({error})") from error
    if role >= Role.ADMINISTRATOR:
        raise _invalid("role", "must be below administrator for a network (got administrator)")


def _invalid(field: str, problem: str) -> InvalidInputError:
    return invalid_field(field, f"{field} {problem}")


def _record(actor: str, action: str, detail: dict[str, Any]) -> None:
    AccessChange.objects.create(actor=actor, action=action, detail=detail)


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
