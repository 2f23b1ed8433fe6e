"""manage.py seed_scenario"""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from cdb_rest.domain.errors import CdbError
from cdb_rest.models import GlobalTag
from cdb_rest.models.names import NAME_LENGTH
from cdb_rest.scenarios.definitions import SCENARIOS
from cdb_rest.scenarios.generator import LAYOUTS
from cdb_rest.scenarios.writer import refresh_statistics, write


class Command(BaseCommand):
    help = (
        "Fill the database with a global tag of a known size. The same scenario, layout and seed make the same rows. "
        "A tag that exists already is left alone. Scenarios: "
        + "; ".join(
            f"{one.name}: {one.payload_types} payload types x {one.iovs_per_type:,} IOVs" for one in SCENARIOS.values()
        )
        + "."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("scenario", choices=SCENARIOS)
        parser.add_argument("--global-tag", metavar="NAME", help="name of the tag (default: the scenario's)")
        parser.add_argument(
            "--layout",
            choices=LAYOUTS,
            default="sequential",
            help="sequential: starts at majors 0, 1, 2...; random: majors and minors uniform in 0...2^31-1 "
            "(default: %(default)s)",
        )
        parser.add_argument("--seed", type=int, default=1, help="another number makes other payloads (default: 1)")

    def handle(self, *, scenario: str, global_tag: str | None, layout: str, seed: int, **options: Any) -> None:
        chosen = SCENARIOS[scenario]
        tag = scenario if global_tag is None else global_tag
        if not tag or len(tag) > NAME_LENGTH or "/" in tag:
            raise CommandError(f"The name of a global tag has 1 to {NAME_LENGTH} characters and no slash.")
        existing = GlobalTag.objects.filter(name=tag).first()
        if existing:
            self._say(existing, "is there already")
            return
        begin = time.monotonic()
        try:
            with tqdm(total=chosen.iovs, unit="IOV", unit_scale=True, desc=tag, disable=None, leave=False) as bar:
                created = write(chosen, tag=tag, layout=layout, seed=seed, progress=bar.update)
        except CdbError as error:
            raise CommandError(str(error)) from error
        refresh_statistics()
        created.refresh_from_db()
        self._say(created, f"made in {time.monotonic() - begin:.1f} s ({layout} layout, seed {seed})")

    def _say(self, tag: GlobalTag, what: str) -> None:
        self.stdout.write(
            f"Global tag {tag.name} {what}: {tag.payload_lists_count:,} payload lists, {tag.payload_iov_count:,} IOVs."
        )
