"""Starts and ends of all rows of a seeded scenario, generated once and stored in a file that all processes share."""

import fcntl
import hashlib
import inspect
from pathlib import Path
from types import ModuleType

import numpy

from cdb.env import ROOT
from cdb_rest.rules.moment import END_OF_TIME, OPEN, Moment
from cdb_rest.scenarios import definitions, generator, layouts
from cdb_rest.scenarios.definitions import Scenario, payload_type_names
from cdb_rest.scenarios.generator import intervals_of_type

DIRECTORY = ROOT / "var" / "load" / "expected"
DRAWN_BY: tuple[ModuleType, ...] = (definitions, generator, layouts)
# A moment is packed into 64 bits. Minors of scenarios are below 2^31, so no row starts at the largest minor.
MINOR_BITS = 32
LARGEST_MINOR = 2**MINOR_BITS - 1
LARGEST_MAJOR = 2**31 - 1


def packed(moment: Moment) -> int:
    """A moment as a 64-bit number that keeps the order; larger values are clamped, since no scenario has them."""
    if moment == END_OF_TIME:
        return OPEN
    return min(moment.major, LARGEST_MAJOR) << MINOR_BITS | min(moment.minor, LARGEST_MINOR)


def unpacked(number: int) -> Moment:
    """The moment of a packed number."""
    return END_OF_TIME if number == OPEN else Moment(number >> MINOR_BITS, number & LARGEST_MINOR)


class Starts:
    """Packed starts and ends of the IOVs: one sequence by start per payload type, in the order of the scenario."""

    def __init__(self, scenario: Scenario, layout: str, seed: int, directory: Path = DIRECTORY) -> None:
        """Map the file into memory; a missing file is written first, which takes some seconds per million rows.

        Raises `OSError` if it cannot be written.
        """
        stem = f"{scenario.name}-{layout}-{seed}-"
        path = directory / f"{stem}{_fingerprint()}.npy"
        if not path.exists():
            _write(path, scenario, layout, seed)
            for old in set(directory.glob(f"{stem}*")) - {path, path.with_suffix(".lock")}:
                old.unlink(missing_ok=True)
        # All processes that map a file share its pages. Views of memory are faster to search than arrays.
        numbers = numpy.load(path, mmap_mode="r")
        self.starts, self.ends = ([memoryview(part) for part in numbers[:, place]] for place in (0, 1))
        self.last_major = max(starts[-1] for starts in self.starts) >> MINOR_BITS


def _write(path: Path, scenario: Scenario, layout: str, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        # One process generates the rows, the others wait for it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return
        numbers = numpy.empty((scenario.payload_types, 2, scenario.iovs_per_type), dtype=numpy.int64)
        for rows, payload_type in zip(numbers, payload_type_names(scenario.payload_types), strict=True):
            intervals = intervals_of_type(scenario, payload_type, layout=layout, seed=seed)
            rows[:] = numpy.array([(packed(start), packed(end)) for start, end in intervals]).T
        unfinished = path.with_suffix(".part.npy")
        numpy.save(unfinished, numbers)
        unfinished.rename(path)


def _fingerprint() -> str:
    """A hash of the code that generates the rows: changed code gives a new file."""
    code = "".join(inspect.getsource(module) for module in DRAWN_BY)
    return hashlib.blake2b(code.encode(), digest_size=6).hexdigest()
