"""manage.py record_restoration"""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.output import report_restoration
from cdb_rest.rules.access import Origin
from cdb_rest.rules.names import COMMENT_LENGTH
from cdb_rest.writes.restorations import record_restoration


class Command(ServiceCommand):
    help = (
        "Record that the database was restored to an earlier state with PostgreSQL's own tools. Run it before the service is "
        "started again: it ensures that no revision of a global tag, and so no ETag, is used twice. `manage.py restore` does "
        "this itself."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--frozen-before",
            metavar="FILE",
            help="file with the names of the global tags that were frozen before the restoration, one on each line",
        )
        parser.add_argument("--comment", default="", help="comment for the change log")

    def handle(self, *, frozen_before: str | None, comment: str, **options: Any) -> None:
        if len(comment) > COMMENT_LENGTH:
            raise CommandError(f"--comment must have at most {COMMENT_LENGTH:,} characters (got {len(comment):,})")
        names = None
        if frozen_before is not None:
            try:
                names = {line.strip() for line in Path(frozen_before).read_text().splitlines() if line.strip()}
            except (OSError, UnicodeDecodeError) as error:
                raise CommandError(
                    f"--frozen-before must be a file with names (got {frozen_before}: {error})"
                ) from error
        origin = Origin("manage.py record_restoration", comment)
        for line in report_restoration(record_restoration(frozen_before=names, origin=origin), names):
            self.stdout.write(line)
