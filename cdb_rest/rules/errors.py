"""The errors of the service, one class for each.

The docstring of a class says what the error means for the client. `code` is a stable identifier for programs.
"""

from typing import Any


class CdbError(Exception):
    """Base class of all errors of the service. The message is for the client.

    `fields` maps the names of invalid fields to lists of messages. For a request with many rows, `rows` has an object for
    each invalid row.
    """

    code = "error"

    def __init__(
        self, message: str, fields: dict[str, list[str]] | None = None, rows: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__(message)
        self.fields = fields or {}
        self.rows = rows or []


class InvalidInputError(CdbError):
    """The request is malformed, or a value is missing, has the wrong type or is out of range."""

    code = "invalid_input"


def invalid_field(field: str, message: str) -> InvalidInputError:
    """The error for a field of a body, a parameter or a header. The message names the field. The caller raises the error."""
    return InvalidInputError(message, {field: [message]})


class UnknownParameterError(CdbError):
    """The query string has a parameter that the route does not accept."""

    code = "unknown_parameter"


class AuthenticationRequiredError(CdbError):
    """The request needs a permission, and it has no token and comes from no trusted network."""

    code = "authentication_required"


class InvalidTokenError(CdbError):
    """The token is not valid: it is unknown or damaged, has expired or was revoked, or its issuer is not trusted.

    The token of a trusted issuer is also rejected while the service cannot get the issuer's key for it.
    """

    code = "invalid_token"


class TooManyAttemptsError(CdbError):
    """Too many requests with invalid tokens came from this address; try again later."""

    code = "too_many_attempts"


class NotPermittedError(CdbError):
    """The user, program or network has no permission for this. The message says which role is needed."""

    code = "not_permitted"


class TooManyRowsError(CdbError):
    """The request has more than 50,000 rows; send them in several requests."""

    code = "too_many_rows"


class NameTakenError(CdbError):
    """Another object of this kind has this name already. The response has the message under the key `name`, too."""

    code = "name_taken"

    def __init__(self, kind: str) -> None:
        super().__init__(f"{kind} with this name already exists.")


class NotFoundError(CdbError):
    """The object does not exist. Most kinds of objects have a code of their own, which follows."""

    code = "not_found"
    kind = "object"

    def __init__(self, name: object) -> None:
        super().__init__(f"There is no {self.kind} {name}.")
        self.name = name


class GlobalTagNotFoundError(NotFoundError):
    """No global tag has this name or id."""

    code = "global_tag_not_found"
    kind = "global tag"


class StatusNotFoundError(NotFoundError):
    """No global tag status has this name. The message lists the existing statuses."""

    code = "status_not_found"
    kind = "global tag status"

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"{name}; existing statuses: {', '.join(known)}")


class PayloadTypeNotFoundError(NotFoundError):
    """No payload type has this name."""

    code = "payload_type_not_found"
    kind = "payload type"


class PayloadListNotFoundError(NotFoundError):
    """No payload list has this name or id, or the tag has no list of this type."""

    code = "payload_list_not_found"
    kind = "payload list"


class PayloadIOVNotFoundError(NotFoundError):
    """No payload IOV has this id, or no IOV of the list has exactly this start and end."""

    code = "payload_iov_not_found"
    kind = "payload IOV"


class AccessRuleNotFoundError(NotFoundError):
    """There is no access rule with this number."""

    code = "access_rule_not_found"
    kind = "access rule"


class TokenNotFoundError(NotFoundError):
    """There is no token with this name."""

    code = "token_not_found"
    kind = "token"


class SettingNotFoundError(NotFoundError):
    """No public setting has this name."""

    code = "setting_not_found"
    kind = "public setting"


class TagLockedError(CdbError):
    """The tag is protected by its status: it cannot be deleted, and its lists and IOVs cannot be removed or changed."""

    code = "global_tag_locked"


class TagFrozenError(CdbError):
    """The tag is frozen: it cannot be changed any more."""

    code = "global_tag_frozen"


class StatusChangeRefusedError(CdbError):
    """The tag's status does not permit a change to the requested status."""

    code = "status_change_refused"


class NameRetiredError(CdbError):
    """The tag cannot be frozen: one of this name was frozen before the database was restored.

    HTTP caches may still have responses for that tag. Clone the tag under another name. Other statuses are permitted.
    """

    code = "name_retired"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Global tag {name} cannot be frozen: a tag of this name was frozen before the database was restored, and HTTP "
            "caches may have responses for it. Clone it under another name."
        )


class OverlapError(CdbError):
    """The IOV would change what is defined in a protected tag, or another IOV of its list has the same start."""

    code = "iov_overlap"


class PayloadTypeInUseError(CdbError):
    """The payload type cannot be deleted, because payload lists of this type exist."""

    code = "payload_type_in_use"


class PayloadListNotEmptyError(CdbError):
    """The payload list cannot be deleted, because it has IOVs."""

    code = "payload_list_not_empty"


class ChangeNotFoundError(NotFoundError):
    """The tag's change log has no entry with this revision."""

    code = "change_not_found"
    kind = "change"


class RevisionNotFoundError(NotFoundError):
    """The tag has no such revision: it is in the future, or before the tag, or was lost in a restoration of the database."""

    code = "revision_not_found"
    kind = "revision"

    def __init__(self, name: object) -> None:
        CdbError.__init__(self, f"There is no {name}.")
        self.name = name


class RevisionPrunedError(CdbError):
    """The tag had this revision, but its contents of then are no longer stored, or never were."""

    code = "revision_pruned"


class KeyReusedError(CdbError):
    """The idempotency key was used with another request; each new request needs a new key."""

    code = "idempotency_key_reused"


class ConcurrentChangeError(CdbError):
    """Another request changed the same objects at the same moment. Nothing was stored; it is safe to retry."""

    code = "concurrent_change"


class TagChangedError(CdbError):
    """The global tag has changed since the revision for which the write was planned. Nothing was stored."""

    code = "global_tag_changed"


class DatabaseUnavailableError(CdbError):
    """The database cannot be reached, does not respond in time or has no space left; try again later.

    A write may have been stored nevertheless.
    """

    code = "database_unavailable"


class OverloadedError(CdbError):
    """There are more requests than the service can handle in time. Nothing was done; try again later."""

    code = "overloaded"
