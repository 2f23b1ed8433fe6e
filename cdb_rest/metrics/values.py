"""The values of metrics, in the memory of the process or in a mapped file that other processes can read.

The classes of this module replace the value classes of prometheus_client, which check the process id at each increment
and take a lock for each value. That costs 6 % more processor time for a small lookup
(docs/decisions/0013-internals-of-libraries.md). After a fork, each `Number` is moved to the file of the child process
instead. `add` increments several values under one lock. prometheus_client defines the file format and reads the files.
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
    """The value of one series of a metric in this process, as prometheus_client expects it of its value classes.

    If processes share their metrics, a counter or histogram continues the value of the process that had the slot
    before. Several threads may call the methods.
    """

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
        """Store the numbers of this process in the files of its slot, and after a fork those of the child in its own.

        It must be called once, before the first `Number` is created. If the files cannot be used, the numbers of the
        process are kept in memory, and a warning is logged.
        """
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
        """Set the number to `value`. `timestamp` is ignored: the gauges of this service do not need it."""
        with Number._lock:
            self._file.numbers[self._index] = value

    def get(self) -> float:
        """The value in this process, not the sum over all processes."""
        return self._file.numbers[self._index]

    def set_exemplar(self, exemplar: Any) -> None:
        """Ignore it: the file format has no exemplars."""

    def get_exemplar(self) -> None:
        """None: exemplars are not stored."""


def share(directory: Path) -> None:
    """Store the metrics of this process, and of its forked processes, in files in `directory` instead of in memory.

    The directory must exist. gunicorn's master process must call this, before the first metric is created and before it
    forks. Further calls have no effect. If the files cannot be used, a warning is logged, and nothing is raised.
    """
    # It is called again when gunicorn reloads its configuration.
    if Number._slots is None:
        here.directory = directory
        Number.keep_in(Slots(directory))


def shared_slots() -> Slots | None:
    """The slots of the processes that share their metrics, or None if `share` was not called."""
    return Number._slots


def add(amounts: Iterable[tuple[Number, float]]) -> None:
    """Add to several numbers under one lock."""
    with Number._lock:
        for number, amount in amounts:
            number._file.numbers[number._index] += amount


def number_of(metric: Counter | Gauge) -> Number:
    """The `Number` that stores the value of a counter or gauge.

    A metric with labels must be the result of `labels()`. Otherwise `AttributeError` is raised.
    """
    number: Number = metric._value
    return number


class Buckets:
    """The `Number` objects of a histogram; if it has labels, of the result of `labels()`.

    To record an amount, in the unit of the histogram, add the amount to `sum` and 1 to `count_of(amount)`.
    """

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, histogram: Histogram) -> None:
        self._bounds: list[float] = histogram._upper_bounds
        self._counts: list[Number] = histogram._buckets
        self.sum: Number = histogram._sum

    def count_of(self, amount: float) -> Number:
        """The number of the only bucket that counts this amount: the one with the lowest upper bound >= `amount`."""
        return self._counts[bisect_left(self._bounds, amount)]
