"""manage.py adopt"""

import json
import time
from argparse import BooleanOptionalAction
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import InterfaceError, OperationalError, connection
from tqdm import tqdm

from cdb_rest import named_sql
from cdb_rest.adopt import show
from cdb_rest.adopt.catalog import NotNopayloaddbError
from cdb_rest.adopt.copying import Copy, begin, is_empty, merged, refresh_statistics
from cdb_rest.adopt.decisions import CHOICES, Decisions, read_decisions
from cdb_rest.adopt.report import MEANINGS, Report
from cdb_rest.adopt.reporting import make_report
from cdb_rest.adopt.source import Source, SourceError, read_url
from cdb_rest.adopt.updating import Updated, copy_tags, update
from cdb_rest.adopt.verifying import Verification, verify, verify_against
from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.interruption import interruptible
from cdb_rest.management.quantities import AT_LEAST_ONE, IN_SECONDS
from cdb_rest.models import Adoption, GlobalTag
from cdb_rest.rules.errors import DatabaseUnavailableError, InvalidInputError, quoted

LINES_SHOWN = 40
LOCK = named_sql.load("lock_adoption")
UNAVAILABLE = (SourceError, DatabaseUnavailableError, OperationalError, InterfaceError)


class Command(ServiceCommand):
    help = (
        "Take over a database of nopayloaddb. Without another option it reports what the database holds, what it needs, and "
        "which answers will change: exit code 0 if a copy needs no more decisions, 1 if it does, 2 for another database. The "
        "source is only read, and may stay in service. docs/adopt.md describes all steps."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "source",
            metavar="SOURCE_URL",
            help="postgresql://USER@HOST:PORT/DATABASE, or @FILE: a file with the URL, which may have a password",
        )
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--report", action="store_true", help="report, and change nothing (the default)")
        what.add_argument(
            "--copy", action="store_true", help="copy all tags, or --only some; run it again after an interruption"
        )
        what.add_argument("--update", action="store_true", help="take over what has changed in the source since")
        what.add_argument(
            "--verify", action="store_true", help="compare all answers; exit code 1 if a difference has no explanation"
        )
        parser.add_argument("--only", nargs="+", default=[], metavar="TAG", help="only these global tags of the source")
        parser.add_argument(
            "--rename", action="append", default=[], metavar="OLD=NEW", help="another name for a global tag"
        )
        parser.add_argument(
            "--timeout",
            default=1800,
            help="time limit of each statement in the source (default: 30min)",
            **IN_SECONDS | {"brief": True},
        )
        parser.add_argument(
            "--watch", help="repeat --update after this time, until it is stopped", **IN_SECONDS | {"brief": True}
        )
        parser.add_argument(
            "--overwrite",
            nargs="+",
            default=[],
            metavar="TAG",
            help="--update replaces what was changed here in these global tags by what the source has",
        )
        parser.add_argument("--against", metavar="URL", help="--verify also asks the old service at this URL")
        parser.add_argument(
            "--moments",
            default=1000,
            metavar="N",
            help="how often --against asks (default: 1000)",
            **AT_LEAST_ONE,
        )
        self._add_output(parser)
        self._add_decisions(parser)

    def _add_output(self, parser: CommandParser) -> None:
        output = parser.add_argument_group("output of the report")
        output.add_argument("--json", action="store_true", help="print the report as JSON")
        output.add_argument("--html", metavar="FILE", help="write the report as one HTML page")
        output.add_argument(
            "--draft",
            metavar="FILE",
            help="write all decisions as a TOML file to fill in, and bad names as a CSV file beside it",
        )

    def _add_decisions(self, parser: CommandParser) -> None:
        decisions = parser.add_argument_group("decisions")
        decisions.add_argument(
            "--decisions", metavar="FILE", help="a TOML file with decisions; options replace those in it"
        )
        decisions.add_argument(
            "--mode",
            choices=("continuous", "discrete"),
            help="whether ends are exclusive or inclusive; nopayloaddb does not store it",
        )
        decisions.add_argument(
            "--map-status",
            action="append",
            default=[],
            metavar="NAME=STATUS",
            help="unlocked, locked or frozen for another status",
        )
        for choice in CHOICES:
            values = [*choice.values]
            default = f" (default: {choice.default})" if choice.default else ""
            decisions.add_argument(choice.option, dest=choice.name, choices=values, help=f"{choice.help}{default}")
        decisions.add_argument(
            "--rename-bad-names",
            metavar="FILE",
            help="a CSV file (kind, old, new) with other names, as --draft writes it",
        )
        decisions.add_argument(
            "--share", action=BooleanOptionalAction, default=None, help="payload lists with the same rows share them"
        )

    def handle(self, *, source: str, timeout: float, **options: Any) -> None:
        _check_options(options)
        decisions = read_decisions(options["decisions"], _given(options))
        try:
            opened = Source(read_url(source), timeout)
        except NotNopayloaddbError as error:
            raise CommandError(str(error), returncode=2) from error
        try:
            with interruptible(lambda: opened.connection) as check:
                if options["copy"]:
                    self._copy(opened, decisions, options["only"])
                elif options["update"]:
                    self._update(opened, decisions, options, check)
                elif options["verify"]:
                    self._verify(opened, options)
                else:
                    self._report(opened, decisions, options)
        finally:
            opened.close()
        if opened.note:
            self.stderr.write(opened.note)
        self.stderr.write(f"Done in {self.took()}.")

    def _report(self, source: Source, decisions: Decisions, options: dict[str, Any]) -> None:
        draft = Path(options["draft"]) if options["draft"] else None
        if draft is not None and draft.exists():
            raise InvalidInputError(f"{draft} exists already")
        report = self._read(source, decisions, options["only"])
        try:
            if options["html"]:
                Path(options["html"]).write_text(show.as_html(report))
            if draft is not None:
                names = draft.with_suffix(".names.csv") if report.bad_names else None
                draft.write_text(show.draft(report, names.name if names else ""))
                if names is not None:
                    show.write_names(report, names)
        except OSError as error:
            raise InvalidInputError(f"{error.filename} cannot be written: {error.strerror}") from error
        if options["json"]:
            self.stdout.write(json.dumps(show.as_json(report), indent=1))
        else:
            self.stdout.write("\n".join(show.as_text(report)))
        if count := len(report.missing):
            raise CommandError(f"decisions needed: {count}")

    def _read(self, source: Source, decisions: Decisions, only: list[str]) -> Report:
        with tqdm(unit="IOV", unit_scale=True, desc="report", disable=None, leave=False) as bar:

            def progress(count: int, total: int) -> None:
                bar.total = total
                bar.update(count)

            return make_report(source, decisions, only=only, progress=progress)

    def _copy(self, source: Source, decisions: Decisions, only: list[str]) -> None:
        _lock()
        adoption = Adoption.objects.filter(source=source.identity).first()
        if not only and not (adoption.keeps_ids if adoption else is_empty()):
            names = ", ".join(GlobalTag.objects.order_by("id").values_list("name", flat=True)[:3])
            raise InvalidInputError(
                f"this database is not empty ({names or 'it has payload types or lists'}): name the tags to copy with --only, "
                "or use an empty one (SCENARIO=none)"
            )
        if adoption is not None:
            decisions = merged(adoption, decisions)
        report = self._read(source, decisions, only)
        if report.missing:
            raise InvalidInputError(f"decisions are missing, nothing was copied: {'; '.join(report.missing)}")
        total = sum(row.get("IOVs", 0) for row in report.statuses)
        with tqdm(total=total, unit="IOV", unit_scale=True, desc="copy", disable=None, leave=False) as bar:
            adoption = begin(source, decisions)
            copy = Copy(source, adoption, Decisions.from_json(adoption.decisions), _shown_by(bar))
            copied = copy_tags(copy, only)
            bar.set_description("vacuum")
            refresh_statistics()
        self.stdout.write(f"Copied {len(copied):,} global tags; --verify compares all answers.")

    def _update(self, source: Source, decisions: Decisions, options: dict[str, Any], check: Callable[[], None]) -> None:
        _lock()
        watch = options["watch"]
        _check_only(_adoption(source), [*options["only"], *options["overwrite"]])
        adoption = begin(source, decisions)
        decisions = Decisions.from_json(adoption.decisions)
        told: dict[str, str] = {}
        while True:
            try:
                _lock()
                with tqdm(unit="IOV", unit_scale=True, desc="update", disable=None, leave=False) as bar:
                    found = update(
                        Copy(source, adoption, decisions, _shown_by(bar), options["overwrite"]), options["only"]
                    )
                # Later changes here are conflicts again.
                options["overwrite"] = []
            except UNAVAILABLE as error:
                check()
                if watch is None:
                    raise
                self.stderr.write(f"{' '.join(str(error).split())}; it is tried again in {watch:.0f} s")
                # If it is broken, the next statement connects again, without the lock.
                connection.close()
                found = Updated()
            for verb, names in (("Added", found.added), ("Changed", found.changed), ("Deleted", found.deleted)):
                if names:
                    self.stdout.write(f"{verb}: {', '.join(names)}")
            for name, reason in found.conflicts.items():
                if told.get(name) != reason:
                    self.stdout.write(f"Left alone: {name}: {reason}")
            told = found.conflicts
            # With --watch, a log that is a file or a pipe gets the lines now.
            self.stdout.flush()
            if watch is None:
                break
            until = time.monotonic() + watch
            while time.monotonic() < until:
                check()
                time.sleep(min(0.2, watch))
        if found.conflicts:
            raise CommandError(f"global tags that were left alone: {len(found.conflicts)}")
        if not found:
            self.stdout.write("Nothing has changed.")

    def _verify(self, source: Source, options: dict[str, Any]) -> None:
        against, moments = options["against"], options["moments"]
        adoption = _adoption(source)
        _check_only(adoption, options["only"])
        with tqdm(unit="IOV", unit_scale=True, desc="verify", disable=None, leave=False) as bar:
            copy = Copy(source, adoption, Decisions.from_json(adoption.decisions), _shown_by(bar))
            found = verify(copy, options["only"])
        self.stdout.write(
            f"Payload lists: {found.equal:,} equal, {found.explained:,} explained, {found.unexplained:,} unexplained."
        )
        if against is not None:
            self._explain(found)
            lists, found = found, Verification()
            with tqdm(total=moments, unit="lookup", desc="verify over HTTP", disable=None, leave=False) as bar:
                verify_against(copy, against, moments, found, bar.update)
            self.stdout.write(
                f"Lookups over HTTP: {found.equal:,} equal of {found.asked:,}; payload types that differ: "
                f"{found.explained:,} explained, {found.unexplained:,} unexplained."
            )
            found.lines, found.unexplained = lists.lines + found.lines, lists.unexplained + found.unexplained
        self._explain(found)
        for line in found.lines[:LINES_SHOWN]:
            self.stdout.write(f"  unexplained: {line}")
        if found.unexplained:
            raise CommandError(f"unexplained differences: {found.unexplained:,}")

    def _explain(self, found: Verification) -> None:
        for reason, count in found.reasons.most_common():
            self.stdout.write(f"  explained: {MEANINGS.get(reason, reason)}: {count:,}")


def _lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute(LOCK)
        [(is_locked,)] = cursor.fetchall()
    if not is_locked:
        raise InvalidInputError("another adoption runs on this database")


def _adoption(source: Source) -> Adoption:
    adoption = Adoption.objects.filter(source=source.identity).first()
    if adoption is None:
        raise InvalidInputError("nothing was copied from this source yet (--copy)")
    return adoption


def _check_only(adoption: Adoption, only: list[str]) -> None:
    if unknown := set(only).difference(adoption.tags.values_list("source_name", flat=True)):
        raise InvalidInputError(f"global tag {quoted(min(unknown))} was not copied from this source (--copy --only)")


def _shown_by(bar: "tqdm[Any]") -> Callable[[str, int], None]:
    def show(tag: str, count: int) -> None:
        bar.set_description(tag)
        bar.update(count)

    return show


# Options that only some modes have, by the name of their value.
OPTIONS_OF = {"report": {"json", "html", "draft"}, "update": {"watch", "overwrite"}, "verify": {"against"}}


def _check_options(options: dict[str, Any]) -> None:
    """Raise `CommandError` for an option that would have no effect."""
    mode = next((name for name in ("copy", "update", "verify") if options[name]), "report")
    for other, names in OPTIONS_OF.items():
        for name in sorted(names):
            if options[name] and other != mode:
                raise CommandError(f"--{name} needs --{other}")


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The decisions that were given as options."""
    given = {choice.name: options[choice.name] for choice in CHOICES}
    given |= {name: options[name] for name in ("mode", "share", "rename_bad_names")}
    for name, option in (("statuses", "map_status"), ("renames", "rename")):
        pairs = [text.rpartition("=") for text in options[option]]
        if any(not separator for _, separator, _ in pairs):
            raise CommandError(f"--{option.replace('_', '-')} must look like OLD=NEW")
        given[name] = {old: new for old, _, new in pairs}
    return given
