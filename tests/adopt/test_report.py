"""The report about databases of every variant, and what a copy of them needs."""

import json
from collections import Counter

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from cdb_rest.adopt.copying import Copy, begin
from cdb_rest.adopt.decisions import CHOICES, Decisions, read_decisions
from cdb_rest.adopt.reporting import make_report
from cdb_rest.adopt.show import as_text
from cdb_rest.adopt.source import Source
from cdb_rest.adopt.updating import copy_tags
from cdb_rest.adopt.verifying import verify
from tests.adopt import model
from tests.adopt.faults import FAULTS, faults_of, plant
from tests.adopt.old_database import ALTERATIONS, FORMS, OldDatabase
from tests.adopt.test_adoption import contents, expected
from tests.builders import make_statuses

pytestmark = pytest.mark.django_db
CHOSEN = {choice.name: next(value for value in choice.values if value != "refuse") for choice in CHOICES}
STATUSES = {"Locked": "locked", "test": "unlocked", "x/y": "locked"}
MODEL_CHOICES = {
    {"duplicate_starts": "equal_starts"}.get(name, name): value for name, value in CHOSEN.items() if name != "frozen_as"
}


def source_of(database):
    return Source(database.connection.dsn, timeout_seconds=60)


def planted(scratch, variant, identity=True, **options):
    """A database with every fault that its variant can have, and the kinds of these faults."""
    database = OldDatabase(scratch, variant, identity=identity, **options).create()
    names = faults_of(variant)
    for name in names:
        plant(database, name)
    return database, {FAULTS[name].kind for name in names}


@pytest.mark.parametrize(("variant", "identity"), FORMS)
def test_every_fault_of_every_variant_is_told_decided_and_copied(scratch, variant, identity):
    make_statuses()
    database, kinds = planted(scratch, variant, identity, schema="django" if variant < "V6" else "public")
    before = model.Data.read(database)
    source = source_of(database)
    assert source.schema.variant == variant
    report = make_report(source, Decisions(), progress=lambda *_: None)
    # A row that is at fault may be at another one, too.
    assert kinds <= report.faults.keys()
    assert all(fault.examples for kind, fault in report.faults.items() if kind != "detached_iov")
    assert {kind for kind, fault in report.faults.items() if not fault.is_decided} == {
        kind
        for kind in kinds
        if kind not in ("orphan", "overlap", "wrong_comb_iov", "open_at_major", "detached_iov", "detached_list")
    }
    names = {(kind, old): new for kind, old, new in report.bad_names}
    decisions = Decisions("continuous", CHOSEN, STATUSES, names=names)
    assert make_report(source, decisions, progress=lambda *_: None).missing == []
    copy = Copy(source, begin(source, decisions), decisions, lambda *_: None)
    copy_tags(copy, [])
    decided = model.decided(before, "continuous", MODEL_CHOICES)
    wanted = expected(before, decided)
    wanted["tags"] = {
        decisions.name("global tag", name): STATUSES.get(status, status) for name, status in wanted["tags"].items()
    }
    wanted["lists"] = {
        decisions.name("payload list", name): (tag and decisions.name("global tag", tag), rows)
        for name, (tag, rows) in wanted["lists"].items()
    }
    assert contents() == wanted
    found = verify(copy)
    assert (found.unexplained, found.lines) == (0, [])
    assert model.Data.read(database) == before


def test_each_decision_that_refuses_or_is_missing_stops_a_copy(scratch):
    database, _ = planted(scratch, "V9")
    source = source_of(database)
    report = make_report(source, Decisions(), progress=lambda *_: None)
    names = {(kind, old): new for kind, old, new in report.bad_names}
    for left_out in [choice.name for choice in CHOICES if choice.default is None]:
        decisions = Decisions("continuous", {k: v for k, v in CHOSEN.items() if k != left_out}, STATUSES, names=names)
        [line] = make_report(source, decisions, progress=lambda *_: None).missing
        assert line.startswith(f"--{left_out.replace('_', '-')}: ")
    for decisions in (
        Decisions("", CHOSEN, STATUSES, names=names),
        Decisions("discrete", CHOSEN, STATUSES, names=names),
        Decisions("continuous", CHOSEN, {}, names=names),
        Decisions("continuous", CHOSEN, STATUSES),
    ):
        assert len(make_report(source, decisions, progress=lambda *_: None).missing) == 1


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_changes_by_hand_are_told(scratch, alteration):
    database = OldDatabase(scratch).create()
    database.iov(None, (1, 0), extra="7", size=5)
    database.execute(ALTERATIONS[alteration])
    report = make_report(source_of(database), Decisions(), progress=lambda *_: None)
    assert report.notes and report.faults["detached_iov"].count == 1


def test_other_databases_are_refused_with_what_they_are(scratch, settings):
    for statement, reason in (
        ("SELECT 1", "it has no table"),
        ('CREATE TABLE "PayloadIOV" (id int)', "but no table"),
        ('CREATE SCHEMA other; CREATE TABLE other."PayloadIOV" (id int)', "in several schemas: other, public"),
    ):
        scratch.cursor().execute(statement)
        with pytest.raises(CommandError, match=reason) as refused:
            call_command("adopt", f"@{url_file(scratch, settings)}")
        assert refused.value.returncode == 2
    scratch.cursor().execute("DROP SCHEMA other CASCADE")
    with pytest.raises(CommandError, match="is a database of cdb already") as refused:
        call_command("adopt", f"@{url_file(transaction.get_connection().connection, settings)}")
    assert refused.value.returncode == 2


def url_file(connection, settings):
    """A file with the URL of a database."""
    named = connection.get_dsn_parameters()
    file = settings.DATA_DIR / "source.url"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"postgresql://{named['user']}@/{named['dbname']}?host={named['host']}&port={named['port']}\n")
    return file


def test_the_forms_of_the_report_agree_and_the_draft_can_be_read(scratch, settings, tmp_path, capsys):
    database, kinds = planted(scratch, "V9")
    draft, page = tmp_path / "adopt.toml", tmp_path / "report.html"
    with pytest.raises(CommandError, match="decisions needed: ") as needed:
        call_command("adopt", f"@{url_file(database.connection, settings)}", "--json", "--draft", draft, "--html", page)
    assert needed.value.returncode == 1
    report = json.loads(capsys.readouterr().out)
    assert kinds <= {fault["kind"] for fault in report["faults"]}
    text = page.read_text()
    assert all(fault["meaning"] in text for fault in report["faults"])
    assert len(report["changed_answers"]) == text.count("<td>Gain_") > 5
    filled = draft.read_text().replace('# "', '"').replace("# mode", "mode")
    lines = []
    for line in filled.splitlines():
        name = line.removeprefix("# ").partition(" =")[0]
        lines.append(f'{name} = "{CHOSEN[name]}"' if line.startswith(f"# {name} =") and name in CHOSEN else line)
    # Of each choice one line.
    draft.write_text(
        "\n".join(line for number, line in enumerate(lines) if line not in lines[:number] or "=" not in line)
    )
    decisions = read_decisions(str(draft), {})
    assert decisions.choices == CHOSEN and decisions.statuses.keys() == STATUSES.keys()
    assert Counter(kind for kind, _ in decisions.names) == {"global tag": 5, "payload type": 1, "payload list": 1}
    lines = as_text(make_report(source_of(database), decisions, progress=lambda *_: None))
    # The start of the row with a negative number.
    assert any(": from (-" in line for line in lines)
