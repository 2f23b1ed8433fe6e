"""manage.py export_nopayloaddb"""

from contextlib import closing
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from tqdm import tqdm

from cdb_rest.adopt.exporting import IDS, VARIANTS, Form, connect, export
from cdb_rest.adopt.source import read_url
from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.interruption import interruptible


class Command(ServiceCommand):
    help = (
        "Write this database, or some of its global tags, into an empty database with the tables of nopayloaddb, so that its own "
        "program can read and write it. The service may run meanwhile: all rows are those of one moment. History, limits, access "
        "rules and accounts are not written. After an interruption the target is as empty as before."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "target",
            metavar="TARGET_URL",
            help="postgresql://USER@HOST:PORT/DATABASE, an empty database, or @FILE: a file with the URL, which may have a "
            "password; USER will own the tables",
        )
        parser.add_argument(
            "--tag",
            dest="tags",
            nargs="+",
            action="extend",
            default=[],
            metavar="NAME",
            help="only these global tags, without detached payload lists and IOVs",
        )
        parser.add_argument(
            "--variant",
            choices=[*VARIANTS],
            default="V9",
            help="V9 for nopayloaddb from 4.1.9 on, V8 for 0.2.4 to 4.1.2, which has no column for revisions (default: V9)",
        )
        parser.add_argument(
            "--ids",
            choices=[*IDS],
            default="identity",
            help="how columns generate ids: serial as with Django before 4.1 (default: identity)",
        )

    def handle(self, *, target: str, tags: list[str], variant: str, ids: str, **options: Any) -> None:
        bar = tqdm(unit="IOV", unit_scale=True, disable=None, leave=False)

        def progress(step: str, done: int, total: int) -> None:
            bar.total = total
            bar.set_description(step, refresh=False)
            bar.update(done - bar.n)

        with bar, closing(connect(read_url(target))) as opened, interruptible(lambda: opened):
            exported = export(opened, Form(variant, ids), tags, progress)
        self.stdout.write("\n".join(exported.lines(settings.CDB_IOV_MODE)) + f" ({self.took()}).")
