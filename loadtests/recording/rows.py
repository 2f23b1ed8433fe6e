"""The rows of a recording."""

from typing import NamedTuple


class Request(NamedTuple):
    """A request, or a whole job (`method` is then JOB, and `rows` the number of its requests).

    `due`, `begin` and `end` are seconds since the epoch: when it was to begin, when it did, and when its answer was there to the
    last byte. They differ in the first two where jobs start at a given rate and the generator is late. `status` is 0 where there
    was none, `rows` -1 where an answer has none.
    """

    due: float
    begin: float
    end: float
    user: str
    name: str
    method: str
    status: int
    outcome: str
    rows: int
    bytes: int
    detail: str


class Sample(NamedTuple):
    """A second of the generator: when it ended (seconds since the epoch), the process's CPU in cores, the longest lag of its
    loop in milliseconds, users, and jobs in progress."""

    time: float
    cpu: float
    lag_ms: float
    users: int
    in_progress: int
