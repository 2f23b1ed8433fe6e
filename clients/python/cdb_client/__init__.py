"""The client of cdb, the conditions database service for particle-physics experiments.

`Client(server).tag(name).resolve(run=…)` is where to begin.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

__version__ = "1.0.0"

# Where each name is. Modules are imported when they are needed, because the command must start quickly.
_MODULES = {
    "client": ("Client",),
    "errors": (
        "CdbError",
        "DataError",
        "InputError",
        "NotAllowedError",
        "NotFoundError",
        "OutsideSnapshotError",
        "RefusedError",
        "UnavailableError",
    ),
    "moments": ("Moment", "OPEN"),
    "payload": ("PayloadIOV", "Resolution"),
    "tag": ("IOVs", "Tag"),
}

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


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"cdb_client.{module}"), name)
    raise AttributeError(f"module 'cdb_client' has no attribute {name!r}")
