"""What locust is given besides `locustfile.py` for campaigns whose users nobody else needs."""

from loadtests.users.campaigns import Inserter, ReadBack, StudyLookup  # noqa: F401
from loadtests.users.scheduled import Scheduled  # noqa: F401
