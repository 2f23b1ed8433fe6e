"""The values of metrics, in the memory of the process or in a mapped file that other processes can read.

They replace those of prometheus_client, which check the process id at each count: that makes a small lookup 6 % more
expensive (docs/decisions/0013-internals-of-libraries.md). These are updated after a fork instead, and several can be
counted under one lock. The format of the files, and the code that reads them, are those of prometheus_client.
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
    """Numbers in the memory of this process."""

    def __init__(self) -> None:
        self.numbers: list[float] = []

    def index_of(self, _key: str) -> int:
        """Add a number and return its index in `numbers`."""
        self.numbers.append(0.0)
        return len(self.numbers) - 1


class _File:
    """Numbers in a mapped file of this process."""

    def __init__(self, path: Path) -> None:
        self._entries = MmapedDict(str(path))
        self.numbers: memoryview[float] = memoryview(self._entries._m).cast("d")

    def index_of(self, key: str) -> int:
        """The index in `numbers` of the number with that key; a new one starts at 0."""
        self._entries.read_value(key)
        # The file may have grown. Writes through the old mapping still reach it.
        if self.numbers.nbytes != len(self._entries._m):
            self.numbers = memoryview(self._entries._m).cast("d")
        position: int = self._entries._positions[key]
        return position // DOUBLE_BYTES


class Number:
    """A value of a metric, with the interface that prometheus_client expects of its value classes."""

    __slots__ = ("_file", "_index", "_key", "_prefix")

    # One lock for all numbers is enough, because of the global interpreter lock.
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
        """Store the numbers of this process, and of each process forked from it, in the files of its slot."""
        cls._slots = slots
        cls._multiprocess = True
        os.register_at_fork(after_in_child=cls._move)

    @classmethod
    def _move(cls) -> None:
        # The thread that held the lock does not exist in the forked process.
        cls._lock = Lock()
        cls._files.clear()
        for number in cls._all:
            number._find()

    def _find(self) -> None:
        file = self._files.get(self._prefix)
        if file is None:
            file = self._files[self._prefix] = self._open()
        self._file, self._index = file, file.index_of(self._key)

    def _open(self) -> _File | _Memory:
        if self._slots:
            try:
                return _File(self._slots.path(self._prefix))
            except OSError as error:
                # The service works without metrics. The counts of this process are not exported.
                logger.warning("the %s metrics of this process are not exported: %s", self._prefix, error)
        return _Memory()

    def inc(self, amount: float) -> None:
        """Add to the number."""
        with Number._lock:
            self._file.numbers[self._index] += amount

    def set(self, value: float, timestamp: float | None = None) -> None:
        """Set the number."""
        with Number._lock:
            self._file.numbers[self._index] = value

    def get(self) -> float:
        """The number."""
        return self._file.numbers[self._index]

    def set_exemplar(self, exemplar: Any) -> None:
        """Ignore it: the file format has no exemplars."""

    def get_exemplar(self) -> None:
        """None: exemplars are not stored."""


def share(directory: Path) -> None:
    """Count together with other processes in `directory`. Must be called before the first metric is created."""
    # It is called again when gunicorn reloads its configuration.
    if Number._slots is None:
        here.directory = directory
        Number.keep_in(Slots(directory))


def shared_slots() -> Slots | None:
    """The slots of the processes that count together; None if this process counts for itself alone."""
    return Number._slots


def add(amounts: Iterable[tuple[Number, float]]) -> None:
    """Add to several numbers under one lock."""
    with Number._lock:
        for number, amount in amounts:
            number._file.numbers[number._index] += amount


def number_of(metric: Counter | Gauge) -> Number:
    """The number of a metric whose labels have values."""
    number: Number = metric._value
    return number


class Buckets:
    """The numbers of a histogram whose labels have values."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, histogram: Histogram) -> None:
        self._bounds: list[float] = histogram._upper_bounds
        self._counts: list[Number] = histogram._buckets
        self.sum: Number = histogram._sum

    def count_of(self, amount: float) -> Number:
        """The counter of the bucket for that amount."""
        return self._counts[bisect_left(self._bounds, amount)]
