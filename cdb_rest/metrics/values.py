"""The numbers behind the metrics, in memory: in that of the process, or in a file's, where other processes read them.

prometheus_client has such numbers too. Its shared ones ask at each count which process they are in, which makes a small lookup
6 % more expensive (docs/decisions/0013-internals-of-libraries.md). These are told about a fork instead, and several are counted
at once. The files, and the code that reads them, are those of prometheus_client.
"""

import logging
import os
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from cdb_rest.metrics.slots import Slots, here

logger = logging.getLogger(__name__)

DOUBLE_BYTES = 8


class _Memory:
    """Numbers of this process alone, one after the other."""

    def __init__(self) -> None:
        self.numbers: list[float] = []

    def place_of(self, _key: str) -> int:
        """Where a new number is among `numbers`."""
        self.numbers.append(0.0)
        return len(self.numbers) - 1


class _File:
    """A file of this process, and its numbers one after the other."""

    def __init__(self, path: Path) -> None:
        self._entries = MmapedDict(str(path))
        self.numbers: memoryview[float] = memoryview(self._entries._m).cast("d")

    def place_of(self, key: str) -> int:
        """Where the number of that key is among `numbers`; it is 0 if it was not there."""
        self._entries.read_value(key)
        # The file may have had to grow. What is written by way of the old mapping still goes into it.
        if self.numbers.nbytes != len(self._entries._m):
            self.numbers = memoryview(self._entries._m).cast("d")
        position: int = self._entries._positions[key]
        return position // DOUBLE_BYTES


class Number:
    """A number, made, counted and set as the client does with its own kinds of numbers."""

    __slots__ = ("_file", "_key", "_place", "_prefix")

    # One lock for all: the threads of a process take turns anyway.
    _lock: ClassVar[Lock] = Lock()
    _slots: ClassVar[Slots | None] = None
    _files: ClassVar[dict[str, _File | _Memory]] = {}
    _all: ClassVar[list["Number"]] = []
    _multiprocess = False

    def __init__(
        self,
        typ: str,
        metric_name: str,
        name: str,
        labelnames: list[str],
        labelvalues: list[str],
        help_text: str,
        multiprocess_mode: str = "",
        **_rest: Any,
    ) -> None:
        self._prefix = f"{typ}_{multiprocess_mode}" if typ == "gauge" else typ
        self._key = mmap_key(metric_name, name, labelnames, labelvalues, help_text)
        with self._lock:
            self._find()
            self._all.append(self)

    @classmethod
    def keep_in(cls, slots: Slots) -> None:
        """Keep the numbers of this process, and of each that is forked from it, in the files of its slot."""
        cls._slots = slots
        cls._multiprocess = True
        os.register_at_fork(after_in_child=cls._move)

    @classmethod
    def _move(cls) -> None:
        # Whoever held it is not among the threads of this process.
        cls._lock = Lock()
        cls._files.clear()
        for number in cls._all:
            number._find()

    def _find(self) -> None:
        file = self._files.get(self._prefix)
        if file is None:
            file = self._files[self._prefix] = self._open()
        self._file, self._place = file, file.place_of(self._key)

    def _open(self) -> _File | _Memory:
        if self._slots:
            try:
                return _File(self._slots.path(self._prefix))
            except OSError as error:
                # Requests are answered all the same; what this process counts, nobody reads.
                logger.warning("%s of this process are not counted: %s", self._prefix, error)
        return _Memory()

    def inc(self, amount: float) -> None:
        """Add to the number."""
        with Number._lock:
            self._file.numbers[self._place] += amount

    def set(self, value: float, timestamp: float | None = None) -> None:
        """Let it be another one."""
        with Number._lock:
            self._file.numbers[self._place] = value

    def get(self) -> float:
        """What it is."""
        return self._file.numbers[self._place]

    def set_exemplar(self, exemplar: Any) -> None:
        """The format of the files has no place for one."""

    def get_exemplar(self) -> None:
        """None is kept."""


def share(directory: Path) -> None:
    """Let the metrics, none of which is made yet, be counted together with other processes, in `directory`."""
    # A second time only where gunicorn reads its configuration again.
    if Number._slots is None:
        here.directory = directory
        Number.keep_in(Slots(directory))


def shared_slots() -> Slots | None:
    """The slots of the processes that count together; None where this one counts for itself alone."""
    return Number._slots


def add(amounts: Iterable[tuple[Number, float]]) -> None:
    """Add to several numbers."""
    with Number._lock:
        for number, amount in amounts:
            number._file.numbers[number._place] += amount


def number_of(metric: Counter | Gauge) -> Number:
    """The number behind a metric that has values for its labels."""
    number: Number = metric._value
    return number


class Buckets:
    """The numbers behind a histogram that has values for its labels."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, histogram: Histogram) -> None:
        self._bounds: list[float] = histogram._upper_bounds
        self._counts: list[Number] = histogram._buckets
        self.sum: Number = histogram._sum

    def count_of(self, amount: float) -> Number:
        """The number of the bucket that an amount belongs to."""
        return self._counts[bisect_left(self._bounds, amount)]
