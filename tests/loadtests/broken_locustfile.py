"""The rig's locustfile with a user that is badly written."""

from loadtests.locustfile import begin, end, prepare  # noqa: F401
from loadtests.users.base import CheckedUser


class Broken(CheckedUser):
    """Fails after its first request, by an exception that nobody expects, and by another one in a request."""

    def job(self, calls):
        calls.request("GET", "globalTags", name="globalTags")
        if next(NUMBERS) % 2:
            raise RuntimeError("badly written")
        calls.request("GET", "globalTags", name="globalTags", headers={"no header\n": "at all"})


NUMBERS = iter(range(1_000_000))
