"""The errors of the service, one class for each.

The docstring of a class says what the error means for the client, `status` is the HTTP status of the response, and `code` is a
stable identifier for programs.
"""

from typing import Any, ClassVar, TypeVar

# The maximum length of a value in a message. Names are shorter.
SHOWN_LENGTH = 100
Found = TypeVar("Found")


def quoted(value: object) -> str:
    """A name or value for a message: a text in quotes, so that spaces and invisible characters show; a number as it is.

    A long text is cut.
    """
    if not isinstance(value, str):
        return str(value)
    return repr(value if len(value) <= SHOWN_LENGTH else f"{value[:SHOWN_LENGTH]}…")


class CdbError(Exception):
    """Base class of all errors of the service. The message is for the client.

    `fields` maps the names of invalid fields to lists of messages. For a request with many rows, `rows` has an object for
    each invalid row.
    """

    status: ClassVar[int]
    code: ClassVar[str]

    def __init_subclass__(cls, status: int | None = None, code: str | None = None) -> None:
        """Without them, `status` and `code` are those of the base class."""
        cls.status = status or cls.status
        cls.code = code or cls.code

    def __init__(
        self, message: str, fields: dict[str, list[str]] | None = None, rows: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__(message)
        self.fields = fields or {}
        self.rows = rows or []


class InvalidInputError(CdbError, status=400, code="invalid_input"):
    """The request is malformed, or a value is missing, has the wrong type or is out of range."""


def existing(found: Found | None, error: CdbError) -> Found:
    """What was found. Raises the error if it is None."""
    if found is None:
        raise error
    return found


def invalid_field(field: str, message: str) -> InvalidInputError:
    """The error for a field of a body, a parameter or a header. The message names the field. The caller raises the error."""
    return InvalidInputError(message, {field: [message]})


class UnknownParameterError(CdbError, status=400, code="unknown_parameter"):
    """The query string has a parameter that the route does not accept. The message names the parameter that may be meant."""


class AuthenticationRequiredError(CdbError, status=401, code="authentication_required"):
    """The request needs a permission, and it has no token and comes from no trusted network."""


class InvalidTokenError(CdbError, status=401, code="invalid_token"):
    """The token is not valid: it is unknown or damaged, has expired or was revoked, or its issuer is not trusted.

    The token of a trusted issuer is also rejected while the service cannot get the issuer's key for it.
    """


class TooManyAttemptsError(CdbError, status=429, code="too_many_attempts"):
    """Too many requests with invalid tokens came from this address; try again later."""


class NotPermittedError(CdbError, status=403, code="not_permitted"):
    """The user, program or network has no permission for this. The message says which role is needed."""


class TooManyRowsError(CdbError, status=413, code="too_many_rows"):
    """The request has more than 50,000 rows; send them in several requests."""


class NameTakenError(CdbError, status=400, code="name_taken"):
    """Another object of this kind has this name already. The response has the message under the key `name`, too."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"{kind} with this name already exists.")


class NotFoundError(CdbError, status=404, code="not_found"):
    """The object does not exist. Most kinds of objects have a code of their own, which follows."""

    kind = "object"

    def __init__(self, name: object = None, *, described: str = "") -> None:
        """`name` is a name or a number. Without it, the object is `described`, with names that are `quoted`."""
        super().__init__(f"There is no {self.kind} {described or quoted(name)}.")
        self.name = name


class GlobalTagNotFoundError(NotFoundError, status=404, code="global_tag_not_found"):
    """No global tag has this name or id."""

    kind = "global tag"


class StatusNotFoundError(NotFoundError, status=404, code="status_not_found"):
    """No global tag status has this name. The message lists the existing statuses."""

    kind = "global tag status"

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(described=f"{quoted(name)}; existing statuses: {', '.join(known)}")


class PayloadTypeNotFoundError(NotFoundError, status=404, code="payload_type_not_found"):
    """No payload type has this name."""

    kind = "payload type"


class PayloadListNotFoundError(NotFoundError, status=404, code="payload_list_not_found"):
    """No payload list has this name or id, or the tag has no list of this type."""

    kind = "payload list"


class PayloadIOVNotFoundError(NotFoundError, status=404, code="payload_iov_not_found"):
    """No payload IOV has this id, or no IOV of the list has exactly this start and end."""

    kind = "payload IOV"


class AccessRuleNotFoundError(NotFoundError, status=404, code="access_rule_not_found"):
    """There is no access rule with this number."""

    kind = "access rule"


class TokenNotFoundError(NotFoundError, status=404, code="token_not_found"):
    """There is no token with this name."""

    kind = "token"


class SettingNotFoundError(NotFoundError, status=404, code="setting_not_found"):
    """No public setting has this name."""

    kind = "public setting"


class TagLockedError(CdbError, status=409, code="global_tag_locked"):
    """The tag is protected by its status: it cannot be deleted, and its lists and IOVs cannot be removed or changed."""


class TagFrozenError(CdbError, status=409, code="global_tag_frozen"):
    """The tag is frozen: it cannot be changed any more."""


class TagLimitError(CdbError, status=409, code="global_tag_limit"):
    """The write exceeds a limit of the tag: it changes what is valid before `closed_until`, or starts after `largest_major`."""


class StatusChangeRefusedError(CdbError, status=409, code="status_change_refused"):
    """The tag's status does not permit a change to the requested status, or a new, empty tag was to be frozen."""


class StatusInUseError(CdbError, status=409, code="status_in_use"):
    """The status cannot be deleted, because it is built in or global tags have it."""


class NameRetiredError(CdbError, status=409, code="name_retired"):
    """The tag cannot be frozen: one of this name was frozen before the database was restored.

    HTTP caches may still have responses for that tag. Clone the tag under another name. Other statuses are permitted.
    """

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Global tag {name} cannot be frozen: a tag of this name was frozen before the database was restored, and HTTP "
            "caches may have responses for it. Clone it under another name."
        )


class OverlapError(CdbError, status=409, code="iov_overlap"):
    """The IOV would change what is defined in a protected tag, or another IOV of its list has the same start."""


class ConfirmationRequiredError(CdbError, status=409, code="confirmation_required"):
    """The write would remove existing IOVs or make gaps; repeat it with a confirmation if this is meant."""


class PayloadTypeInUseError(CdbError, status=409, code="payload_type_in_use"):
    """The payload type cannot be deleted, because payload lists of this type exist."""


class PayloadListNotEmptyError(CdbError, status=409, code="payload_list_not_empty"):
    """The payload list cannot be deleted, because it has IOVs."""


class PayloadIOVSharedError(CdbError, status=409, code="payload_iov_shared"):
    """The IOV cannot be moved to another payload list, because clones share the rows of its list."""


class ChangeNotFoundError(NotFoundError, status=404, code="change_not_found"):
    """The tag's change log has no entry with this revision."""

    kind = "change"


class RevisionNotFoundError(NotFoundError, status=404, code="revision_not_found"):
    """The tag has no such revision: it is in the future, or before the tag, or was lost in a restoration of the database."""

    kind = "revision"

    def __init__(self, described: str) -> None:
        CdbError.__init__(self, f"There is no {described}.")
        self.name = None


class RevisionPrunedError(CdbError, status=410, code="revision_pruned"):
    """The tag had this revision, but its contents of then are no longer stored, or never were."""


class NotPinnedError(CdbError, status=404, code="not_pinned"):
    """The address is pinned to a state of one global tag, and serves neither other tags nor this path."""


class PinnedWriteError(CdbError, status=405, code="pinned_address"):
    """The address is pinned to a state of a global tag, so it is only for reads."""


class RequestNotFoundError(NotFoundError, status=404, code="request_not_found"):
    """No request has this number."""

    kind = "request"


class SubscriptionNotFoundError(NotFoundError, status=404, code="subscription_not_found"):
    """No subscription has this number."""

    kind = "subscription"


class RequestClosedError(CdbError, status=409, code="request_closed"):
    """The request was accepted, rejected or withdrawn already. The message says by whom."""


class TooManyOpenRequestsError(CdbError, status=409, code="too_many_open_requests"):
    """The client has the maximum number of open requests: withdraw one, or wait until one is decided."""


class KeyReusedError(CdbError, status=409, code="idempotency_key_reused"):
    """The idempotency key was used with another request; each new request needs a new key."""


class ConcurrentChangeError(CdbError, status=409, code="concurrent_change"):
    """Another request changed the same objects at the same moment. Nothing was stored; it is safe to retry."""


class TagChangedError(CdbError, status=409, code="global_tag_changed"):
    """The global tag has changed since the revision for which the write was planned. Nothing was stored."""


class UndoConflictError(CdbError, status=409, code="undo_conflict"):
    """The change cannot be undone: later changes stand in the way, which the message names, or it is of another kind.

    Nothing was stored.
    """


class DatabaseUnavailableError(CdbError, status=504, code="database_unavailable"):
    """The database cannot be reached, does not respond in time or has no space left; try again later.

    A write may have been stored nevertheless.
    """


class OverloadedError(CdbError, status=504, code="overloaded"):
    """There are more requests than the service can handle in time. Nothing was done; try again later."""
