"""The client of cdb, the conditions database service for particle-physics experiments.

`Client(server).tag(name).resolve(run=…)` is where to begin.
"""

__version__ = "1.0.0"

from cdb_client.client import Client
from cdb_client.errors import (
    CdbError,
    DataError,
    InputError,
    NotAllowedError,
    NotFoundError,
    OutsideSnapshotError,
    RefusedError,
    UnavailableError,
)
from cdb_client.moments import OPEN, Moment
from cdb_client.payload import PayloadIOV, Resolution
from cdb_client.tag import IOVs, Tag

__all__ = [
    "OPEN",
    "CdbError",
    "Client",
    "DataError",
    "IOVs",
    "InputError",
    "Moment",
    "NotAllowedError",
    "NotFoundError",
    "OutsideSnapshotError",
    "PayloadIOV",
    "RefusedError",
    "Resolution",
    "Tag",
    "UnavailableError",
]
