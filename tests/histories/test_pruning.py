"""Random histories that are pruned at random points: what is left answers as before, and is without faults."""

import threading
from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from django.db import connection
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from cdb_rest.history.changes import read_change
from cdb_rest.history.contents import find_past, past_counts
from cdb_rest.maintenance.history_check import find_history_faults
from cdb_rest.maintenance.pruning import Limit, prune_history
from cdb_rest.models import GlobalTag, GlobalTagChange
from cdb_rest.rules.access import matches
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import RevisionPrunedError
from tests.histories.judge import played
from tests.histories.machine import FULL_RANGE, SMALL_RANGE, Histories, play_until
from tests.histories.tag_rules import NUMBER
from tests.histories.test_histories import Connection
from tests.histories.writers import Race
from tests.profiles import examples, of_soak

STEPS = examples(100)
MOST_STEPS = 2000
PORTION = settings(max_examples=2, stateful_step_count=max(15, examples(50)), suppress_health_check=list(HealthCheck))


class PrunedHistories(Histories):
    """Histories of all kinds of writes, with prunings in between."""

    def __init__(self):
        super().__init__()
        self._pruned = set()

    @rule(
        limit=st.tuples(st.just("keep"), st.integers(1, 6)) | st.tuples(st.just("before"), st.integers(0, 30)),
        pattern=st.sampled_from([None, None, "a", "[bc]"]),
        batch=st.integers(1, 7),
    )
    def prune(self, limit, pattern, batch):
        kind, value = limit
        if kind == "before":
            changes = list(GlobalTagChange.objects.order_by("created"))
            value = changes[value % len(changes)].created
        chosen = Limit(**{kind: value}, pattern=pattern)
        self._pruned |= expected_to_go(chosen)
        documents = read_documents()
        pruned = prune_history(limit=chosen, batch=batch)
        played["pruned revisions"] += pruned.revisions
        played["deleted rows"] += pruned.areas
        assert self._pruned == {(change.global_tag, change.revision) for change in pruned_changes()}
        assert self.state() == self._last
        assert find_history_faults() == []
        assert read_documents().items() <= documents.items()

    @rule(number=NUMBER)
    def delete_without_history(self, number):
        tag = self.pick(GlobalTag, number)
        self.delete_tag(tag, keep_history=False)
        if tag and not GlobalTag.objects.filter(id=tag.id).exists():
            played["deletions without history"] += 1
            self._pruned |= set(GlobalTagChange.objects.filter(tag_id=tag.id).values_list("global_tag", "revision"))
            assert find_history_faults() == []

    def check_past(self):
        """Everything that was ever answered is answered again or has been pruned, by revision and by time."""
        played["steps"] += 1
        for (query, revision), (text, window, created) in self._answered.items():
            for as_of in (AsOf(revision=revision), AsOf(time=created)):
                if (query.tag, revision) in self._pruned:
                    with pytest.raises(RevisionPrunedError):
                        self.look_up_past(query, as_of, window)
                    played["pruned lookups"] += 1
                else:
                    found = self.look_up_past(query, as_of, window)
                    assert (found.text, found.window) == (text, window), (query, revision)
        assert find_history_faults() == []

    def check_log(self):
        """Without its first revisions, the state of a tag cannot be made from the log. `prune` compares the documents."""


def pruned_changes():
    return GlobalTagChange.objects.filter(has_history=False)


def expected_to_go(limit):
    """The revisions that a pruning drops, by the definition."""
    changes, gone = defaultdict(list), set()
    for change in GlobalTagChange.objects.order_by("revision"):
        changes[change.global_tag].append(change)
    for name, log in changes.items():
        if limit.pattern is not None and not matches(limit.pattern, name):
            continue
        tag = GlobalTag.objects.filter(name=name).select_related("status").first()
        if limit.keep is not None:
            dropped = log[: -limit.keep]
        else:
            dropped = [old for old, new in pairwise(log) if new.created <= limit.before]
            dropped += [old for old in log if old.action == "delete" and old.created <= limit.before]
        for change in dropped:
            is_current = tag is not None and change is log[-1]
            is_frozen = tag is not None and (tag.status.name, change.status) == ("frozen", "frozen")
            if not is_current and not (is_frozen and change.tag_id == tag.id):
                gone.add((name, change.revision))
    return gone


def read_documents():
    """What each change removed and added, as far as it is stored."""
    found = {}
    for change in GlobalTagChange.objects.order_by("id"):
        try:
            before, after, groups = read_change(change)
        except RevisionPrunedError:
            continue
        found[change.global_tag, change.revision] = repr((before, after, [(side, list(rows)) for side, rows in groups]))
    return found


WORLDS = {
    f"{extent}-{mode}": (
        type("PrunedHistories", (PrunedHistories,), {"numbers": numbers, "discrete": mode == "discrete"}),
        mode,
    )
    for extent, numbers, mode in (("small", SMALL_RANGE, "continuous"), ("full", FULL_RANGE, "discrete"))
}


@pytest.mark.django_db
@pytest.mark.parametrize("world", ["full-discrete", *of_soak("small-continuous")])
def test_what_a_pruned_history_keeps_is_as_before(world, settings):
    machine, settings.CDB_IOV_MODE = WORLDS[world]
    play_until(_is_enough, machine, PORTION, most_steps=MOST_STEPS)


def _is_enough(seen: Counter) -> bool:
    rare = ("deleted rows", "pruned lookups", "deletions without history", "clones of the past")
    return seen["steps"] >= STEPS / len(WORLDS) and all(seen[name] for name in rare)


class RaceWithPruning(Race):
    """Writers and readers that ask for revisions which may be pruned by then."""

    def do(self, *request, permitted=(200,)):
        return super().do(*request, permitted=(*permitted, 410))


@pytest.mark.django_db(transaction=True)
def test_writers_at_the_same_time_lose_no_history_that_is_kept():
    race, over, failures = RaceWithPruning(Connection, seed=1, tags=2), threading.Event(), []

    def prune():
        try:
            while not over.is_set():
                prune_history(limit=Limit(keep=5), batch=7)
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    pruner = threading.Thread(target=prune)
    pruner.start()
    try:
        race.run(writers=8, writes_each=8)
    finally:
        over.set()
        pruner.join()
    assert not failures
    assert find_history_faults() == []
    assert pruned_changes().exists()
    for tag in GlobalTag.objects.all():
        past = find_past(tag.name, AsOf(revision=tag.revision))
        assert past_counts(past) == (tag.payload_lists_count, tag.payload_iov_count)
