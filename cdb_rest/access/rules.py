"""Access rules in memory: the permissions that they give to a token, a user or a network.

Each process reads the rules again when its copy is older than `REFRESH_SECONDS`, so a change takes effect within that
time. To read them costs two queries. Only requests that need permissions read them.
"""

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_network
from time import monotonic
from typing import Any

from cdb_rest.models import AccessRule, RevokedToken, RuleKind
from cdb_rest.rules.access import NOTHING, Permission, escaped, is_pattern, matches, role_of

# Revocations must take effect within 5 seconds.
REFRESH_SECONDS = 2
# OpenID Connect's own scopes, and those that ask for groups. All others are capabilities.
OTHER_SCOPES = {"openid", "profile", "email", "address", "phone", "offline_access"}
GROUP_SCOPES = ("wlcg", "eduperson")


@dataclass(frozen=True)
class Rules:
    """All access rules, and the revoked tokens of other issuers: the time of revocation by issuer, claim and value."""

    rules: tuple[AccessRule, ...]
    revoked: Mapping[tuple[str, str, str], datetime]

    def of_token(self, name: str) -> tuple[Permission, ...]:
        """The permissions of a token of this service."""
        return self._of(RuleKind.TOKEN, [name])

    def of_user(self, name: str, groups: Collection[str] = ()) -> tuple[Permission, ...]:
        """The permissions of a user, who is a member of these groups."""
        return self._of(RuleKind.USER, [name]) + self._of(RuleKind.GROUP, groups)

    def of_claims(self, issuer: str, claims: Mapping[str, Any]) -> tuple[Permission, ...]:
        """The permissions of a token (JWT) with these claims.

        To a token with capabilities in its scope, only rules for the claim `scope` apply. Source: WLCG token profile
        1.3.
        """
        scopes = values_of(claims, "scope")
        is_capability = any(scope not in OTHER_SCOPES and not scope.startswith(GROUP_SCOPES) for scope in scopes)
        found = []
        for rule in self.rules:
            if rule.kind != RuleKind.CLAIM or rule.issuer != issuer or (is_capability and rule.claim != "scope"):
                continue
            for value in values_of(claims, rule.claim):
                if matches(rule.subject, value):
                    found.append(_permission(rule, value))
        return tuple(found)

    def of_network(self, address: IPv4Address | IPv6Address) -> tuple[str, tuple[Permission, ...]]:
        """The name of the clients at this address, and their permissions; the name is empty for an unknown network.

        Of several networks that contain the address, the smallest one names the clients, and all of them give permissions.
        """
        found = [
            (_network(rule.subject).prefixlen, rule)
            for rule in self.rules
            if rule.kind == RuleKind.NETWORK and address in _network(rule.subject)
        ]
        if not found:
            return "", ()
        _, closest = max(found, key=lambda one: one[0])
        return closest.identity, tuple(_permission(rule) for _, rule in found)

    def _of(self, kind: RuleKind, names: Iterable[str]) -> tuple[Permission, ...]:
        names = list(names)
        return tuple(
            _permission(rule)
            for rule in self.rules
            if rule.kind == kind and any(matches(rule.subject, name) for name in names)
        )


def values_of(claims: Mapping[str, Any], claim: str) -> list[str]:
    """The values of a claim as a list of texts: the texts of an array, the words of a text `scope`, or another text.

    Empty if the claim is missing or has another type.
    """
    value = claims.get(claim)
    if isinstance(value, str):
        return value.split() if claim == "scope" else [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _permission(rule: AccessRule, value: str = "") -> Permission:
    """The permission of a rule. In a rule for a claim, `value`, the claim's value, replaces the placeholders."""
    # A value such as ")|(.*" is no valid pattern by itself. Inside the rule's pattern it could match any name.
    pattern = f"(?:{value})" if is_pattern(value) else NOTHING
    tags, types = (
        text.replace("{value}", escaped(value)).replace("{pattern}", pattern) if rule.kind == RuleKind.CLAIM else text
        for text in (rule.tags, rule.types)
    )
    return Permission(role_of(rule.role), str(rule), tags, types)


_network = lru_cache(maxsize=1000)(ip_network)
_lock = threading.Lock()
_read: list[tuple[float, Rules]] = []


def current(max_age: float = REFRESH_SECONDS) -> Rules:
    """The rules, at most `max_age` seconds old. While a thread reads them, others wait. Raises `django.db.Error`."""
    now = monotonic()
    with _lock:
        if not _read or now - _read[0][0] > max_age:
            _read[:] = [(now, _load())]
        return _read[0][1]


def forget() -> None:
    """Read the rules again at the next call of `current`."""
    with _lock:
        _read.clear()


def _load() -> Rules:
    revoked = {
        (revoked_token.issuer, revoked_token.claim, revoked_token.value): revoked_token.created
        for revoked_token in RevokedToken.objects.all()
    }
    return Rules(tuple(AccessRule.objects.order_by("id")), revoked)
