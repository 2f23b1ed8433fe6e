"""The client of cdb, the conditions database service for particle-physics experiments.

`Client(server).tag(name).resolve(run=…)` is where to begin.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from cdb_client.client import Client
    from cdb_client.tag import IOVs, Tag

__version__ = "1.0.0"

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


# What is imported when it is needed, because the command must start quickly.
_MODULES = {"Client": "client", "IOVs": "tag", "Tag": "tag"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'cdb_client' has no attribute {name!r}")
    return getattr(import_module(f"cdb_client.{_MODULES[name]}"), name)
