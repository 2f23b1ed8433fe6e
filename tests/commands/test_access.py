"""manage.py grant, token and who-may: what they print about patterns, units, unknown names and open writes."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from cdb_rest.models import ApiToken, PayloadType
from tests.api.helpers import grant as add_rule

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _content(build):
    for name in ("online_1", "online_2", "test"):
        build.tag(name)
    for name in ("Gain", "Noise"):
        PayloadType.objects.create(name=name)


def run(*arguments):
    """Standard output and standard error of a command."""
    output, errors = StringIO(), StringIO()
    call_command(*arguments, stdout=output, stderr=errors)
    return output.getvalue(), errors.getvalue()


def who_may(*arguments):
    return run("who-may", *arguments)[0]


def test_grant_shows_what_a_pattern_matches_and_warns_about_a_glob():
    printed, _ = run("grant", "user", "alice", "--role", "contributor", "--tags", "online_*", "--types", "Gain")
    assert "perhaps online_.* is meant" in printed
    assert "--tags online_* matches 0 of 3 global tags now." in printed
    assert "--types Gain matches 1 of 2 payload types now: Gain." in printed
    printed, _ = run("grant", "user", "alice", "--role", "contributor", "--tags", "online_.*")
    assert "Warning" not in printed
    assert "--tags online_.* matches 2 of 3 global tags now: online_1, online_2." in printed
    assert "--types .* matches 2 of 2 payload types now: Gain, Noise." in printed


def test_a_new_token_is_alone_on_standard_output():
    printed, errors = run("token", "create", "--name", "robot", "--role", "contributor", "--tags", "online_?")
    assert printed.count("\n") == 1 and printed.startswith("cdb_")
    assert "perhaps online_. is meant" in errors and "matches 0 of 3 global tags now" in errors


@pytest.mark.parametrize("text", ["90", "1e3", " 7 "])
def test_the_time_until_a_token_expires_needs_a_unit(text):
    with pytest.raises(
        Exception, match=f"--expires must be a number with one of the units ms, s, min, h, d .got {text}"
    ):
        run("token", "create", "--name", "robot", "--role", "reader", f"--expires={text}")
    assert not ApiToken.objects.exists()
    run("token", "create", "--name", "robot", "--role", "reader", "--expires", "90d")
    assert ApiToken.objects.get().expires is not None


def test_who_may_insert_lists_rules_for_some_types():
    add_rule(kind="user", subject="alice", role="contributor", tags="online_.*", types="Gain")
    add_rule(kind="user", subject="bob", role="contributor", tags="test")
    add_rule(kind="user", subject="carol", role="reader")
    assert [name for name in ("alice", "bob", "carol") if name in who_may("insert", "online_1")] == ["alice"]
    assert "alice" in who_may("insert", "online_1", "--type", "Gain")
    assert "alice" not in who_may("insert", "online_1", "--type", "Noise")
    assert "alice" not in who_may("lock", "online_1")


def test_who_may_knows_which_tags_and_types_exist():
    with pytest.raises(CommandError, match="There is no global tag 'onlin_1'"):
        who_may("insert", "onlin_1")
    with pytest.raises(CommandError, match="There is no payload type 'Gian'"):
        who_may("insert", "online_1", "--type", "Gian")
    assert "There are no rules." in who_may("create", "new")


@pytest.mark.parametrize(
    ("value", "words"), [(True, "Writes are open to all clients"), (None, "Writes of make run are open"), (False, "")]
)
def test_who_may_says_when_writes_are_open(settings, value, words):
    settings.CDB_OPEN_WRITES = value
    printed = who_may("insert", "online_1")
    assert words in printed and ("are open" in printed) == bool(words)
    assert "Reads are open to all clients" in who_may("read")
    settings.CDB_ANONYMOUS_READS = False
    assert "are open" not in who_may("read")
