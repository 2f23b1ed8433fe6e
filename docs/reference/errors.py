"""docs/errors.md, from the error classes and from `OTHER_ERRORS`. Django must be set up before the import."""

from cdb_rest.rules import errors
from docs.reference.markdown import cell

ERRORS: list[type[errors.CdbError]] = sorted(
    (
        var
        for var in vars(errors).values()
        if isinstance(var, type) and issubclass(var, errors.CdbError) and var.__bases__ != (Exception,)
    ),
    key=lambda one: one.status,
)

INTRODUCTION = """\
<!-- Generated from cdb_rest/rules/errors.py by `make reference`. Do not edit it here. -->

# Error codes

This page lists, for authors of clients, every error code and what it means. An error response is a
JSON object with `detail`, a sentence for people, and `code`, a stable identifier for programs. If
parameters or fields of the body are invalid, each of them is a further key. A response with status
504 has the header `Retry-After`: send the request again after that number of seconds.

## Errors of the service
"""

OTHERS_INTRODUCTION = """\
## Errors of HTTP, of the health checks and of nginx
"""

# The errors that have no class in cdb_rest/rules/errors.py: status, code, meaning.
OTHER_ERRORS = (
    ("400", "invalid_json", "The body is not JSON."),
    (
        "400",
        "body_too_complex",
        "Arrays and objects are nested more than 16 deep, or the body has too many values: more than 10,000, in a request of "
        "rows more than 32 for each row of the 50,000 that a request may have.",
    ),
    (
        "400",
        "malformed_request",
        "Only behind nginx: the request is not valid HTTP, or has characters that must be percent-encoded.",
    ),
    ("400", "bad_request", "The request is malformed, or the host name is unknown."),
    ("403", "cross_site_request", "A browser sent a write for a page of another site."),
    ("404", "route_not_found", "The path does not exist."),
    ("405", "method_not_allowed", "The path does not accept this method."),
    ("411", "length_required", "The body is chunked, and there is no nginx in front that would add its length."),
    ("412", "precondition_failed", "`If-Match` or `If-Unmodified-Since` of a read failed."),
    ("413", "body_too_large", "The body is larger than `CDB_MAX_BODY_BYTES`."),
    (
        "415",
        "unsupported_media_type",
        "The headers declare the body as something other than JSON, or as compressed.",
    ),
    ("429", "too_many_logins", "Only from the login, behind nginx: there were too many attempts."),
    ("500", "internal_error", "There is a bug in the service; the error was logged."),
    ("503", "migrations_missing", "Only from `/health/ready`: the database lacks migrations."),
    ("503", "database_unavailable", "Only from `/health/ready`: the database does not respond."),
    (
        "504",
        "service_unavailable",
        "Only behind nginx: the service itself is down, does not respond in time, or has more requests than it can handle.",
    ),
    ("other", "login_failed", "A login at an identity provider failed. The status is 403, 429 or 504."),
    ("other", "refused", "The request was rejected outside of the API, for example a write to a static file."),
)


def page() -> str:
    """The text of docs/errors.md: the errors with a class in `cdb_rest.rules.errors`, and the others."""
    head = "| status | `code` | meaning |\n|---|---|---|\n"
    own = "".join(
        f"| {error.status} | `{error.code}` | {cell(' '.join((error.__doc__ or '').split()))} |\n" for error in ERRORS
    )
    others = "".join(f"| {status} | `{code}` | {meaning} |\n" for status, code, meaning in OTHER_ERRORS)
    return "\n".join([INTRODUCTION, head + own, OTHERS_INTRODUCTION, head + others])
