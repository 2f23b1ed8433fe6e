"""The second locustfile, with the users that only campaigns need."""

from loadtests.users.campaigns import Inserter, ReadBack, StudyLookup  # noqa: F401
from loadtests.users.scheduled import Scheduled  # noqa: F401
