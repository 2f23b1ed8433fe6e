"""Reports of an adoption as text, JSON, an HTML page, and drafts of the files that hold the decisions."""

import csv
import dataclasses
from collections.abc import Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from django.template.loader import render_to_string

from cdb_rest.adopt.decisions import CHOICES
from cdb_rest.adopt.report import ChangedAnswer, Report

LINES_SHOWN = 40
LINES_OF_A_LIST = 3


def as_text(report: Report) -> list[str]:
    """The lines of the report for a terminal."""
    lines = [
        f"{report.source}: nopayloaddb, schema {report.variant} ({report.server}; ids: {report.ids})",
        *(f"  {note}" for note in report.notes),
        f"It holds {_numbers(report.numbers)}.",
        *(f"  {_counts(row)}" for row in report.statuses),
    ]
    if report.shareable_iovs:
        lines.append(
            f"{report.shareable_iovs:,} IOVs are in lists with the rows of another list: --share stores them once."
        )
    lines.append(f"A copy takes about {report.seconds:,} s and {report.gigabytes:.2f} GB, if no row is shared.")
    if report.faults:
        lines += ["", "Found:"]
    for fault in report.faults.values():
        decision = "" if not fault.option else f" ({fault.option}{'' if fault.is_decided else ', to be decided'})"
        lines.append(f"  {fault.meaning}: {fault.count:,}{decision}")
        lines += [f"    {example}" for example in fault.examples]
    if report.changed_answers:
        lines += ["", "Answers that will differ from those of the old service:"]
        shown = _some_of_each_list(report.changed_answers)[:LINES_SHOWN]
        lines += [
            f"  {answer.global_tag}, {answer.payload_list}: from {answer.since} until "
            f"{answer.until or 'the end of time'}: {answer.old or 'nothing'} -> {answer.new or 'nothing'}"
            for answer in shown
        ]
        if len(report.changed_answers) > len(shown):
            lines.append(f"  and {len(report.changed_answers) - len(shown):,} more (--json and --html have all)")
    lines.append("")
    if report.mode_hints and not report.decisions.mode:
        lines += ["Hints about the mode:", *(f"  {hint}" for hint in report.mode_hints)]
    if report.missing:
        lines += ["Decisions that a copy needs (--draft FILE writes a file with all of them):"]
        lines += [f"  {line}" for line in report.missing]
    else:
        lines.append("All that a copy needs is decided.")
    return lines


def _some_of_each_list(answers: Sequence[ChangedAnswer]) -> list[ChangedAnswer]:
    grouped = groupby(answers, key=lambda answer: (answer.global_tag, answer.payload_list))
    return [answer for _, group in grouped for answer in islice(group, LINES_OF_A_LIST)]


def _counts(row: dict[str, Any]) -> str:
    return f"{row['status']}: {_numbers({name: count for name, count in row.items() if name != 'status'})}"


def _numbers(counts: dict[str, int]) -> str:
    """The numbers that are not 0, with the plural nouns that are their names."""
    told = [f"{count:,} {name if count != 1 else name.removesuffix('s')}" for name, count in counts.items() if count]
    return ", ".join(told) or "nothing"


def as_json(report: Report) -> dict[str, Any]:
    """The report as a JSON object."""
    return dataclasses.asdict(report) | {
        "faults": [dataclasses.asdict(fault) | {"meaning": fault.meaning} for fault in report.faults.values()],
        "decisions": report.decisions.as_json(),
        "missing": report.missing,
        "mode_hints": report.mode_hints,
        "estimate": {"seconds": report.seconds, "gigabytes": round(report.gigabytes, 2)},
    }


def as_html(report: Report) -> str:
    """The report as one HTML page, which needs no other file."""
    kinds = ("global tags", "payload lists", "IOVs")
    statuses = [(row["status"], [f"{row.get(kind, 0):,}" for kind in kinds]) for row in report.statuses]
    numbers = [(name, f"{count:,}") for name, count in report.numbers.items()]
    return render_to_string("cdb_rest/adopt_report.html", {"report": report, "numbers": numbers, "statuses": statuses})


def draft(report: Report, names_file: str) -> str:
    """A TOML file with all decisions as comments. `names_file` is the name of the CSV file with names, '' if there is none."""
    lines = [
        f"# Decisions for the adoption of {report.source}. Remove the # before the value that you choose.",
        "",
        "# Whether an end is the first moment after an interval (continuous) or the last one in it (discrete).",
        *(f"#   {hint}" for hint in report.mode_hints),
        f'mode = "{report.decisions.mode}"' if report.decisions.mode else '# mode = "continuous"',
        "",
        "# Whether payload lists with the same rows share them; it saves space, and the rows have the same ids then.",
        "share = false",
    ]
    for choice in CHOICES:
        count = sum(fault.count for fault in report.faults.values() if fault.option == choice.option)
        found = f"found: {count:,}" if count else "none found"
        lines += ["", f"# {choice.help[0].upper()}{choice.help[1:]} ({found})."]
        given = report.decisions.choices.get(choice.name)
        lines += [f'{"" if value == given else "# "}{choice.name} = "{value}"' for value in choice.values]
    if report.unknown_statuses:
        lines += ["", "# What each status of global tags is here: unlocked, locked or frozen.", "[statuses]"]
        lines += [f'# {_quoted(name)} = "unlocked"' for name in report.unknown_statuses]
    if names_file:
        # Before the tables, as TOML demands.
        lines.insert(1, f'\n# Other names for those that are not permitted here.\nrename_bad_names = "{names_file}"')
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def write_names(report: Report, file: Path) -> None:
    """Write the CSV file of names that are not permitted here, with a suggestion for each."""
    with file.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(("kind", "old", "new"))
        writer.writerows(report.bad_names)
