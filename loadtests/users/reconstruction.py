"""The C++ client of reconstruction jobs."""

import random

from loadtests.users.base import Calls, CheckedUser, Reply

LARGEST = 2**31 - 1


class ReconstructionJob(CheckedUser):
    """Asks whether the tag exists, then for its payloads at a moment, each over a new connection."""

    def job(self, calls: Calls) -> None:
        """Two calls."""
        tag = self.options.global_tag or "tiny"

        def named(reply: Reply) -> str | None:
            return None if any(item["name"] == tag for item in reply.json) else f"no global tag {tag}"

        calls.ask("GET", "globalTags", name="globalTags", check=named)
        major, minor = random.randint(0, LARGEST), random.randint(0, LARGEST)
        path = f"payloadiovs/?gtName={tag}&majorIOV={major}&minorIOV={minor}"
        calls.ask("GET", path, name="lookup", check=lambda reply: None if isinstance(reply.json, list) else "no list")
