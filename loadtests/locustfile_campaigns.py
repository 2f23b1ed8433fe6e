"""The second locustfile, with the users that only campaigns need."""

from loadtests.users.campaigns import Inserter, ReadBack, Scheduled, StudyLookup  # noqa: F401
