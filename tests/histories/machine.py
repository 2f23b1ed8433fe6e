"""Random histories of all kinds of writes, compared with the oracle after each step, in small portions."""

import contextlib
from collections import Counter
from collections.abc import Callable
from itertools import count

from django.db import connection, transaction
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, run_state_machine_as_test

from cdb_rest import named_sql
from cdb_rest.maintenance.repair import find_incorrect_counts
from cdb_rest.models import PayloadType
from cdb_rest.writes import payload_lists
from tests.builders import make_statuses
from tests.histories.iov_rules import IOVRules
from tests.histories.judge import played
from tests.histories.oracle import LAST
from tests.histories.request_rules import RequestRules
from tests.histories.tag_rules import TAGS, TYPES, TagRules
from tests.profiles import seed_of_round

# Where 32 bits, 64 bits or a rounded decimal would give way; and a small world, where moments meet often.
FULL_RANGE = [0, 1, 2, 10**9 + 1, 1_700_000_000, 2**31 - 1, 2**31, 2**53 + 1, 10**18, LAST - 1, LAST]
SMALL_RANGE = [0, 1, 2]


class Histories(TagRules, IOVRules, RuleBasedStateMachine):
    """Writes to up to three tags. Subclasses say from which numbers moments are made, and whether ends are inclusive."""

    numbers: list
    discrete: bool

    def __init__(self):
        super().__init__()
        self._transaction = contextlib.ExitStack()
        self._transaction.enter_context(transaction.atomic())
        make_statuses()
        for name in TYPES:
            PayloadType.objects.get_or_create(name=name)

    def teardown(self):
        try:
            self.check_log()
            self.check_past()
            with connection.cursor() as cursor:
                cursor.execute(named_sql.load("apply_deferred_counts"))
            assert find_incorrect_counts() == []
        finally:
            transaction.set_rollback(True)
            self._transaction.close()

    @initialize(data=st.data())
    def world(self, data):
        """A grid of moments in which all IOVs begin and end, and two tags to begin with."""
        majors = st.just(0) if data.draw(st.booleans()) and len(self.numbers) > 3 else st.sampled_from(self.numbers)
        moments = st.tuples(majors, st.sampled_from(self.numbers))
        first = [(0, 0), (LAST, LAST)]
        self.grid = sorted({*first, *data.draw(st.lists(moments, min_size=4, max_size=10, unique=True))})
        for name in TAGS[:2]:
            self.make_tag(name)
            for kind in TYPES:
                made = payload_lists.create_payload_list(payload_type=kind)
                payload_lists.attach_payload_list(global_tag=name, payload_list=made.name)
            self._last = self.state()
        self.check()


class RequestHistories(RequestRules, Histories):
    """Histories in which writes are also requested and accepted."""


def machine(numbers, discrete):
    """The machine for one world."""
    return type("RequestHistories", (RequestHistories,), {"numbers": numbers, "discrete": discrete})


WORLDS = {
    f"{extent}-{mode}": (machine(numbers, mode == "discrete"), mode)
    for extent, numbers in {"small": SMALL_RANGE, "full": FULL_RANGE}.items()
    for mode in ("continuous", "discrete")
}


def play_until(
    enough: Callable[[Counter], bool], machine: type[RuleBasedStateMachine], portion: settings, *, most_steps: int
) -> None:
    """Play portions of histories until `enough` says so of the counts of all of them; fails after `most_steps` steps."""
    begin = Counter(played)
    for number in count():
        seen = played - begin
        if enough(seen):
            return
        assert seen["steps"] < most_steps, seen
        # Without a seed of its own, each portion would be the first one again wherever examples do not depend on chance.
        run_state_machine_as_test(seed(seed_of_round(number))(machine), settings=portion)
