"""Users that campaigns alone have, and their options; the web UI offers none of them."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

from locust import events
from locust.argument_parser import LocustArgumentParser

from cdb_rest.domain.moment import Moment
from cdb_rest.scenarios.layouts import RANDOM_MOMENTS
from loadtests.content.blocks import Content, row_to_insert, start_of
from loadtests.content.expected import Expected
from loadtests.users.base import Calls, CheckedUser, Reply


@events.init_command_line_parser.add_listener
def add_options(parser: LocustArgumentParser) -> None:
    """Shown nowhere but in the help."""
    add = parser.add_argument
    add("--numbers-from", type=int, default=0, metavar="N", help="of IOVs to insert or read", include_in_web_ui=False)
    add("--lookup-tag", default="", metavar="NAME", help="that lookups alone ask about", include_in_web_ui=False)
    add("--route", default="payloadiovs/", metavar="PATH", help="by which they do", include_in_web_ui=False)


class _Numbered(CheckedUser):
    """All users of a class share the numbers, so that each is taken once."""

    abstract = True
    numbers: Iterator[int] | None = None

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self._tag = self.options.global_tag
        if type(self).numbers is None:
            type(self).numbers = itertools.count(self.options.numbers_from)


class Inserter(_Numbered):
    """An expert's client that makes an IOV and puts it into its list, by one call."""

    def job(self, calls: Calls) -> None:
        """One call."""
        row = row_to_insert(self._tag, next(self.numbers))

        def stored(reply: Reply) -> str | None:
            [told] = reply.json["rows"]
            added = told["added"]
            wanted = (row["payload_type"], row["payload_url"], list(row["since"]))
            there = (told["payload_type"], added["payload_url"], added["since"])
            return None if there == wanted and added["id"] else f"inserted {there}, not {wanted}"

        calls.ask("POST", "payload-iovs/insert", name="insert", json=row, check=stored)


class ReadBack(_Numbered):
    """A job that asks for the start of an IOV that was inserted, and knows all that is to be answered."""

    content: Content | None = None

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        if type(self).content is None:
            options = environment.parsed_options
            count = options.numbers_from + options.jobs_per_user * options.num_users
            type(self).content = Content(count)

    def job(self, calls: Calls) -> None:
        """One call."""
        major, minor = start_of(next(self.numbers))
        wanted = self.content.at(major, minor)

        def same(reply: Reply) -> str | None:
            if reply.json == wanted:
                return None
            return f"at {major}, {minor} not what was inserted: {[row for row in reply.json if row not in wanted][:1]}"

        path = f"payloadiovs/?gtName={self._tag}&majorIOV={major}&minorIOV={minor}"
        calls.ask("GET", path, name="lookup", check=same)


class StudyLookup(CheckedUser):
    """What the scripts of the load study (docs/load-tests.md) asked for: the lookup alone, at random moments, over a new
    connection, by any route."""

    expected: Expected | None = None

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        if type(self).expected is None:
            type(self).expected = Expected(self.options.lookup_tag, "random", seed=1)

    def job(self, calls: Calls) -> None:
        """One call."""
        options, moment = self.options, Moment(random.randrange(RANDOM_MOMENTS), random.randrange(RANDOM_MOMENTS))

        def right(reply: Reply) -> str | None:
            reply.rows = len(reply.json)
            return self.expected.fault(moment, reply.body)

        path = f"{options.route}?gtName={options.lookup_tag}&majorIOV={moment.major}&minorIOV={moment.minor}"
        calls.ask("GET", path, name="lookup", check=right)
