"""manage.py seed_scenario"""

import sys
import time
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.interruption import interruptible
from cdb_rest.management.quantities import Number
from cdb_rest.models import GlobalTag
from cdb_rest.rules.errors import NameTakenError
from cdb_rest.rules.names import name_fault
from cdb_rest.scenarios.definitions import SCENARIOS, Scenario
from cdb_rest.scenarios.layouts import LAYOUTS
from cdb_rest.scenarios.writer import refresh_statistics, write, write_clone


class Command(ServiceCommand):
    help = (
        "Create a global tag of a known size. The same scenario, layout and seed give the same rows. "
        "An existing tag is not changed; an interrupted command leaves no rows. Scenarios: "
        + "; ".join(
            f"{item.name}: {item.payload_types} payload types x {item.iovs_per_type:,} IOVs"
            for item in SCENARIOS.values()
        )
        + "."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("scenario", choices=SCENARIOS, help="the size: one of the scenarios above")
        parser.add_argument("--global-tag", metavar="NAME", help="name of the tag (default: that of the scenario)")
        parser.add_argument(
            "--layout",
            choices=LAYOUTS,
            default="realistic",
            help="realistic: majors are runs from 1, minors are seconds, types have different update rates, ends are closed, "
            "there are some gaps; random: majors and minors uniform in 0...2^31-1, open ends; "
            "sequential: starts at majors 0, 1, 2..., open ends (default: %(default)s)",
        )
        parser.add_argument(
            "--seed",
            action=Number,
            kind=int,
            default=1,
            metavar="N",
            help="seed of the random payloads and intervals (default: %(default)s)",
        )
        parser.add_argument(
            "--clones",
            action=Number,
            kind=int,
            least=0,
            default=0,
            metavar="N",
            help="also clone the tag, as NAME-clone-1 to NAME-clone-N (default: %(default)s)",
        )
        parser.add_argument(
            "--reset", action="store_true", help="delete the tag and its clones first if they exist, after confirmation"
        )
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation of --reset")

    def handle(
        self,
        *,
        scenario: str,
        global_tag: str | None,
        layout: str,
        seed: int,
        clones: int,
        reset: bool,
        yes: bool,
        **options: Any,
    ) -> None:
        tag = scenario if global_tag is None else global_tag
        names = [tag, *(f"{tag}-clone-{number}" for number in range(1, clones + 1))]
        existing = GlobalTag.objects.in_bulk(names, field_name="name")
        for name in names:
            if (reset or name not in existing) and (fault := name_fault(name, settings.CDB_NAME_PATTERN)):
                raise CommandError(fault)
        if reset and existing and not yes:
            self._confirm(list(existing))
        try:
            with interruptible():
                if tag in existing and not reset:
                    self._report(existing[tag], "already exists")
                else:
                    self._seed(SCENARIOS[scenario], tag, layout=layout, seed=seed, replace=reset)
                self._clone(tag, [name for name in names[1:] if reset or name not in existing], replace=reset)
        except NameTakenError as error:
            raise CommandError(f"another client created {tag} or a clone of it at the same time") from error

    def _seed(self, scenario: Scenario, tag: str, *, layout: str, seed: int, replace: bool) -> None:
        begin = time.monotonic()
        with tqdm(total=scenario.iovs, unit="IOV", unit_scale=True, desc=tag, disable=None, leave=False) as bar:
            created = write(scenario, tag=tag, layout=layout, seed=seed, replace=replace, progress=bar.update)
            bar.set_description(f"{tag}: vacuum")
            refresh_statistics()
        self._report(created, f"created in {time.monotonic() - begin:.1f} s ({layout} layout, seed {seed})")

    def _clone(self, tag: str, names: list[str], *, replace: bool) -> None:
        for name in names:
            begin = time.monotonic()
            with tqdm(total=0, desc=f"cloning {name}", bar_format="{desc}", disable=None, leave=False):
                clone = write_clone(tag, name, replace=replace)
            self._report(clone, f"cloned in {time.monotonic() - begin:.1f} s")
        if names:
            refresh_statistics()

    def _confirm(self, names: list[str]) -> None:
        """Ask for confirmation. Raises `CommandError` if the operator declines, or if standard input is not a terminal."""
        listed = ", ".join(names)
        if not sys.stdin.isatty():
            raise CommandError(f"--reset would delete {listed}; without a terminal for confirmation, it requires --yes")
        try:
            answer = input(f"Delete {listed} and all their IOVs? [y/N] ")
        except EOFError:
            answer = ""
        if answer.strip().lower() not in ("y", "yes"):
            raise CommandError("not confirmed; nothing was changed")

    def _report(self, tag: GlobalTag, state: str) -> None:
        tag.refresh_from_db()
        self.stdout.write(
            f"Global tag {tag.name} {state}: {tag.payload_lists_count:,} payload lists, {tag.payload_iov_count:,} IOVs."
        )
