"""manage.py prune_history that is interrupted, or that runs beside writes."""

import pytest
from django.db import DatabaseError

from cdb_rest.maintenance import pruning
from cdb_rest.models import (
    PayloadIOVHistory,
)
from cdb_rest.writes import global_tags
from tests.commands.pruning import known, make_history

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("payload_types")]


@pytest.mark.parametrize("steps", range(12))
def test_after_an_interruption_no_revision_has_history_without_its_rows(monkeypatch, steps):
    make_history("tag", revisions=6)
    make_history("gone", revisions=4)
    global_tags.delete_global_tag(name="gone")
    before = {name: known(name) for name in ("tag", "gone")}
    left = steps

    def interrupted(real):
        def execute(**values):
            nonlocal left
            left -= 1
            if left < 0:
                raise DatabaseError("interrupted")
            return real(**values)

        return execute

    for name in ("_drop_history", "_execute"):
        monkeypatch.setattr(pruning, name, interrupted(getattr(pruning, name)))
    limit = pruning.Limit(keep=2)
    with pytest.raises(DatabaseError):
        pruning.prune_history(limit=limit, batch=2)
    for name in ("tag", "gone"):
        assert known(name).items() <= before[name].items()
    monkeypatch.undo()
    pruning.prune_history(limit=limit)
    assert known("tag") == {revision: before["tag"][revision] for revision in (5, 6)}
    assert set(known("gone")) == {4}
    assert PayloadIOVHistory.objects.count() == 2
