"""What can go wrong, one class each, in the field's terms.

The docstring says what it means to the caller; `code` is the stable identifier that programs may rely on.
"""


class CdbError(Exception):
    """Base of all errors of the service. The message is one sentence for the caller.

    Of a request with many rows, `rows` says which are wrong and why; `fields` maps wrong fields to what is wrong with them.
    """

    code = "error"

    def __init__(
        self, message: str, fields: dict[str, list[str]] | None = None, rows: list[dict[str, object]] | None = None
    ) -> None:
        super().__init__(message)
        self.fields = fields or {}
        self.rows = rows or []


class InvalidInputError(CdbError):
    """The request is malformed, or a value is missing, of the wrong type or out of range."""

    code = "invalid_input"


class UnknownParameterError(CdbError):
    """The query string has a parameter that the route does not have."""

    code = "unknown_parameter"


class TooManyRowsError(CdbError):
    """A bulk request has more rows than are accepted at once; send them in parts."""

    code = "too_many_rows"


class NameTakenError(CdbError):
    """Another object of this kind has that name already."""

    code = "name_taken"

    def __init__(self, kind: str) -> None:
        super().__init__(f"{kind} with this name already exists.")


class NotFoundError(CdbError):
    """Base of the errors for objects that do not exist."""

    code = "not_found"
    kind = "object"

    def __init__(self, name: object) -> None:
        super().__init__(f"There is no {self.kind} {name}.")
        self.name = name


class GlobalTagNotFoundError(NotFoundError):
    """No global tag has that name or id."""

    code = "global_tag_not_found"
    kind = "global tag"


class StatusNotFoundError(NotFoundError):
    """No global tag status has that name; the message lists those that there are."""

    code = "status_not_found"
    kind = "global tag status"

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"{name}; there are {', '.join(known)}")


class PayloadTypeNotFoundError(NotFoundError):
    """No payload type has that name."""

    code = "payload_type_not_found"
    kind = "payload type"


class PayloadListNotFoundError(NotFoundError):
    """No payload list has that name or id, or the tag has none of that type."""

    code = "payload_list_not_found"
    kind = "payload list"


class PayloadIOVNotFoundError(NotFoundError):
    """No payload IOV has that id, or none of the list has exactly that start and end."""

    code = "payload_iov_not_found"
    kind = "payload IOV"


class SettingNotFoundError(NotFoundError):
    """No public setting has that name."""

    code = "setting_not_found"
    kind = "public setting"


class TagLockedError(CdbError):
    """The tag is locked: what is defined in it stays as it is."""

    code = "global_tag_locked"


class TagFrozenError(CdbError):
    """The tag is frozen: nothing in it changes any more."""

    code = "global_tag_frozen"


class StatusChangeRefusedError(CdbError):
    """The tag's status does not permit a change to the one asked for."""

    code = "status_change_refused"


class OverlapError(CdbError):
    """The interval overlaps that of another IOV of the same list."""

    code = "iov_overlap"


class PayloadTypeInUseError(CdbError):
    """Payload lists of that type exist, so it can't be deleted."""

    code = "payload_type_in_use"


class PayloadListNotEmptyError(CdbError):
    """The list holds IOVs, so it can't be deleted."""

    code = "payload_list_not_empty"


class ChangeNotFoundError(NotFoundError):
    """The tag's change log has no such revision."""

    code = "change_not_found"
    kind = "change"


class ChangeTooLargeError(CdbError):
    """The change takes away or adds more IOVs than one entry of the change log can hold, which is about a million."""

    code = "change_too_large"


class KeyReusedError(CdbError):
    """The idempotency key belongs to another request; each new request needs a new one."""

    code = "idempotency_key_reused"


class ConcurrentChangeError(CdbError):
    """Another request changed the same objects at the same moment; repeating this one is safe."""

    code = "concurrent_change"


class DatabaseUnavailableError(CdbError):
    """The database can't be reached or does not answer in time; try again later."""

    code = "database_unavailable"


class OverloadedError(CdbError):
    """As many such requests as are permitted at a time are running already; try again later."""

    code = "overloaded"
