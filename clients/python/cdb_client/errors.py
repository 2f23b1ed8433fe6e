"""The errors of the client. Each class has the exit code that the command ends with."""

from collections.abc import Mapping
from typing import Any, ClassVar


class CdbError(Exception):
    """Base class. Itself, it is a failure without a class of its own: a bug, or a response that is not from a cdb service.

    `str()` is one line that names the server, and the global tag and moment if there are any. `document` is the service's error
    response, if there is one.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, document: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.document = document or {}


class InputError(CdbError):
    """A value that the caller gave is missing, malformed or out of range, or the configuration is invalid."""

    exit_code = 2


class NotAllowedError(CdbError):
    """The service requires a token, rejects the token, or the role of the user does not permit the request."""

    exit_code = 3


class NotFoundError(CdbError):
    """The global tag, payload type, revision or other object does not exist, or is no longer stored."""

    exit_code = 4


class MissingPayloadError(NotFoundError, KeyError):
    """The result of a lookup has no payload of this type. It is a `KeyError` too, so that `get` of a mapping works."""

    __str__ = Exception.__str__


class RefusedError(CdbError):
    """The status of the tag, one of its limits, or existing data forbid the write. Nothing was stored."""

    exit_code = 5


class DataError(CdbError):
    """A payload file is missing or has another size or checksum than was inserted, or a snapshot is damaged."""

    exit_code = 6


class OutsideSnapshotError(DataError):
    """The snapshot does not contain the tag, the payload type or the moment."""


class UnavailableError(CdbError):
    """The service did not answer until the time for retries was over. A later attempt may succeed."""

    exit_code = 75
