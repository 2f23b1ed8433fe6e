"""The clock of tests that restore the state at a time between two writes."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """The time, once the clock shows another millisecond than that of the last write, and before that of the next."""
    time.sleep(0.01)
    moment = datetime.now(UTC)
    time.sleep(0.01)
    return moment
