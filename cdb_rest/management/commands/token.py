"""manage.py token"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from cdb_rest.access.issuers import check_name
from cdb_rest.analysis.access_rules import matched_now
from cdb_rest.management.access import actor, add_role_options
from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.output import table
from cdb_rest.management.quantities import IN_SECONDS
from cdb_rest.models import ApiToken
from cdb_rest.writes import access

# A hundred years. The time of expiry must be in the range of `datetime`, whose last year is 9999.
MAX_SECONDS = 36_525 * 86_400


class Command(ServiceCommand):
    help = "Create, list and revoke tokens for programs, which send them as `Authorization: Bearer TOKEN`."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(
            dest="action", required=True, metavar="ACTION", help="create, list, revoke or revoke-issued"
        )
        create = actions.add_parser("create", help="create a token; it is printed once, alone on standard output")
        create.add_argument("--name", required=True, help="name of the program, for the change log")
        create.add_argument(
            "--expires",
            **IN_SECONDS | {"most": MAX_SECONDS, "needs_unit": True},
            help="time after which the token is invalid, such as 90d (default: never)",
        )
        add_role_options(create)
        actions.add_parser("list", help="list the tokens, without their values")
        revoke = actions.add_parser("revoke", help="make a token invalid, within 2 seconds")
        revoke.add_argument("name", metavar="NAME", help="name of the token")
        issued = actions.add_parser("revoke-issued", help="make tokens (JWT) of an identity provider invalid")
        issued.add_argument("--issuer", required=True, help="name of the issuer in CDB_ISSUERS_FILE")
        which = issued.add_mutually_exclusive_group(required=True)
        which.add_argument("--jti", help="id of one token: its claim jti")
        which.add_argument("--sub", help="subject, all of whose tokens issued up to now become invalid")

    def handle(self, *, action: str, **options: Any) -> None:
        run: dict[str, Callable[..., None]] = {
            "create": self._create,
            "list": self._list,
            "revoke": self._revoke,
            "revoke-issued": self._revoke_issued,
        }
        run[action](**options)

    def _create(
        self, *, name: str, expires: float | None, role: str, tags: str, types: str, comment: str, **options: Any
    ) -> None:
        token, row = access.create_token(
            actor=actor("token create"),
            name=name,
            role=role,
            tags=tags,
            types=types,
            lifetime=None if expires is None else timedelta(seconds=expires),
            comment=comment,
        )
        self.stderr.write(
            f"Token {name} created: {role} for global tags {tags} and payload types {types}, expires {_text(row.expires)}. "
            "It is not stored and not shown again:",
            self.style.NOTICE,
        )
        self.stdout.write(token)
        for line in matched_now(tags, types):
            self.stderr.write(line, self.style.NOTICE)

    def _list(self, **options: Any) -> None:
        rows = [
            [token.name, _state(token), _text(token.created), _text(token.expires), _text(token.last_used)]
            for token in ApiToken.objects.order_by("id")
        ]
        header = ["name", "state", "created", "expires", "last used"]
        self.stdout.write(table(header, rows) if rows else "There are no tokens.")

    def _revoke(self, *, name: str, **options: Any) -> None:
        token = access.revoke_token(actor=actor("token revoke"), name=name)
        self.stdout.write(f"Token {token.name} is revoked since {_text(token.revoked)}.")

    def _revoke_issued(self, *, issuer: str, jti: str | None, sub: str | None, **options: Any) -> None:
        check_name(issuer)
        claim, value = ("jti", jti) if jti is not None else ("sub", sub or "")
        access.revoke_issued_token(actor=actor("token revoke-issued"), issuer=issuer, claim=claim, value=value)
        self.stdout.write(f"Tokens of {issuer} with {claim} {value}, issued up to now, are not accepted any more.")


def _state(token: ApiToken) -> str:
    if token.revoked is not None:
        return "revoked"
    return "expired" if token.expires is not None and token.expires <= timezone.now() else "valid"


def _text(time: datetime | None) -> str:
    return "never" if time is None else f"{time:%Y-%m-%dT%H:%M:%SZ}"
