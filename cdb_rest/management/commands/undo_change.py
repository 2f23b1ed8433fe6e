"""manage.py undo_change"""

from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser

from cdb_rest.management.access import by_account
from cdb_rest.management.command import ServiceCommand
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import CdbError
from cdb_rest.rules.names import COMMENT_LENGTH
from cdb_rest.writes.transactions import roll_back
from cdb_rest.writes.undoing import undo_change


class Command(ServiceCommand):
    help = (
        "Undo one change of a global tag, and leave the later ones: rows and payload lists that it removed come back, those that "
        "it added leave the tag. If later changes stand in the way, they are named, and nothing changes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tag", metavar="TAG", help="name of the global tag")
        parser.add_argument("revision", metavar="REVISION", type=int, help="revision of the tag after the change")
        parser.add_argument("--comment", default="", help="reason for the change log (default: none)")
        parser.add_argument("--dry-run", action="store_true", help="report, and change nothing")

    def handle(self, *, tag: str, revision: int, comment: str, dry_run: bool, **options: Any) -> None:
        if len(comment) > COMMENT_LENGTH:
            raise CommandError(f"--comment must have at most {COMMENT_LENGTH:,} characters (got {len(comment):,})")
        origin = Origin(by_account("undo_change"), comment)
        service = partial(undo_change, name=tag, revision=revision, origin=origin)
        try:
            found = roll_back(service) if dry_run else service()
        except CdbError as error:
            raise CommandError(f"{error} Nothing was stored.") from error
        for one in found.types:
            detached, attached = one.detached, "a new payload list" if one.is_created and dry_run else one.attached
            lists = (
                f"; list detached: {detached or 'none'}, attached: {attached or 'none'}" if detached or attached else ""
            )
            self.stdout.write(f"{one.payload_type}: IOVs removed: {one.removed:,}, added: {one.added:,}{lists}")
        if found.status:
            self.stdout.write(f"status: {found.status}")
        if not found.types and not found.status:
            self.stdout.write(f"Nothing of revision {revision} of global tag {tag} is left to undo.")
        else:
            made = f"; it has revision {found.revision} now" if found.revision and not dry_run else ""
            self.stdout.write(f"{'Would undo' if dry_run else 'Undid'} revision {revision} of global tag {tag}{made}.")
