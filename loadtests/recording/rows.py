"""The rows of the files of a recording."""

from typing import NamedTuple


class Request(NamedTuple):
    """A request, or a whole job (`method` is then JOB, and `rows` the number of its requests).

    `due`, `begin` and `end` are seconds since the epoch: when the request was due, when it began, and when the
    last byte of its response arrived. `due` and `begin` differ if jobs start at a given rate and the generator
    is late. `status` is 0 without a response; `rows` is -1 if the response has no rows.
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
    """One second of a generator process.

    `time` is its end in seconds since the epoch, `cpu` the CPU of the process in cores, `lag_ms` the longest
    lag of its event loop in milliseconds; `users` and `in_progress` are the numbers of users and of jobs in
    progress.
    """

    time: float
    cpu: float
    lag_ms: float
    users: int
    in_progress: int
