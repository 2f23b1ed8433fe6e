"""The locustfile of the load tests with a user class that has a bug."""

from loadtests.locustfile import begin, end, prepare  # noqa: F401
from loadtests.users.base import CheckedUser


class Broken(CheckedUser):
    """Raises an unexpected exception after its first request, or in its second request, in turns."""

    def job(self, calls):
        calls.request("GET", "globalTags", name="globalTags")
        if next(NUMBERS) % 2:
            raise RuntimeError("a bug")
        calls.request("GET", "globalTags", name="globalTags", headers={"no header\n": "at all"})


NUMBERS = iter(range(1_000_000))
