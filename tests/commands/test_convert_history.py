"""manage.py convert_history: what it makes of the change log of earlier versions, held against the history that there was."""

from io import StringIO

import pytest
from django.core.management import call_command
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from cdb_rest.models import GlobalTag, GlobalTagChange
from tests.commands.before_history import documents, forget_history
from tests.histories.machine import WORLDS
from tests.profiles import examples

STEPS = settings(
    max_examples=examples(30),
    stateful_step_count=max(20, examples(50)),
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
COUNTS = ("payload_iovs_before", "payload_iovs_after")


def convert(*arguments):
    """What the command prints."""
    out = StringIO()
    call_command("convert_history", *arguments, stdout=out)
    return out.getvalue()


class Upgrades:
    """A history of writes in which cdb is upgraded once, and the log is converted afterwards."""

    def __init__(self):
        super().__init__()
        self._documents = None
        self._expected = set()
        self._counts = {}

    @precondition(lambda self: self._documents is None)
    @rule()
    def upgrade(self):
        self._counts = {one: number for one, *number in GlobalTagChange.objects.values_list("id", *COUNTS)}
        self._documents = forget_history()
        for tag in GlobalTag.objects.all():
            ids = []
            for change in GlobalTagChange.objects.filter(global_tag=tag.name).order_by("-revision"):
                ids.append(change.id)
                if change.action in ("create", "clone"):
                    break
            self._expected.update(ids)
        self._counts = {one: number for one, number in self._counts.items() if one in self._expected}

    @precondition(lambda self: self._documents is not None)
    @rule()
    def convert(self):
        convert("--batch", "3")

    def check_log(self):
        """Each change of a tag that existed at the upgrade is as it was, and there are no documents of it any more."""
        if self._documents is None:
            self.upgrade()
        convert()
        converted = GlobalTagChange.objects.filter(id__in=self._documents, has_history=True)
        assert {change.id for change in converted} == self._expected
        for change in converted:
            assert change.logged_before is None and change.logged_after is None
            before, after = documents(change)
            assert (before, after) == self._documents[change.id], (change.global_tag, change.revision)
        counts = GlobalTagChange.objects.filter(id__in=self._expected)
        assert {one: number for one, *number in counts.values_list("id", *COUNTS)} == self._counts
        self._answered = {
            (query, revision): answer
            for (query, revision), answer in self._answered.items()
            if GlobalTagChange.objects.get(global_tag=query.tag, revision=revision).has_history
        }


@pytest.mark.django_db
@pytest.mark.parametrize("world", WORLDS)
def test_every_revision_of_a_random_history_answers_as_it_did(world, settings):
    machine, settings.CDB_IOV_MODE = WORLDS[world]
    run_state_machine_as_test(type("Upgraded", (Upgrades, machine), {}), settings=STEPS)
