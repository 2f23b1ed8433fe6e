"""Who may do what: roles, permissions on tags and payload types by patterns, principals, origins of changes, API tokens."""

import hashlib
import re
import secrets
import string
import zlib
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

from cdb_rest.rules.errors import AuthenticationRequiredError, NotPermittedError, invalid_field, quoted
from cdb_rest.rules.names import TEXT_LENGTH

ANY = ".*"
# A pattern that matches no text: the set of excluded characters has every character.
NOTHING = r"[^\x00-\x{10FFFF}]"
# The placeholders for the value of a claim in the patterns of a rule.
PLACEHOLDERS = ("{value}", "{pattern}")


class Role(IntEnum):
    """A role. Each includes those before it."""

    READER = 1
    CONTRIBUTOR = 2
    MANAGER = 3
    PUBLISHER = 4
    ADMINISTRATOR = 5

    def __str__(self) -> str:
        return self.name.lower()


class All(Enum):
    """All global tags or all payload types, as the object of an action."""

    ALL = "all"


# The object of an action: the name of a tag or a type, all of them, or None if the action has no such object. With
# None, a permission for any tags or types is sufficient.
Object = str | All | None

# For the documentation and the admin.
MEANINGS = {
    Role.READER: "read, where reads are not open to all clients",
    Role.CONTRIBUTOR: "insert into unlocked tags; create payload types, payload lists and payload IOVs",
    Role.MANAGER: "create, clone, lock, unlock, revert and delete tags; extend locked tags; remove lists and IOVs",
    Role.PUBLISHER: "freeze tags, which cannot be undone",
    Role.ADMINISTRATOR: "change rules, tokens and subscriptions",
}

# The actions of the command `who-may`, with the role that each needs for an unlocked tag.
ACTIONS = {
    "read": Role.READER,
    "insert": Role.CONTRIBUTOR,
    "create": Role.MANAGER,
    "clone": Role.MANAGER,
    "lock": Role.MANAGER,
    "unlock": Role.MANAGER,
    "revert": Role.MANAGER,
    "delete": Role.MANAGER,
    "freeze": Role.PUBLISHER,
    "administer": Role.ADMINISTRATOR,
}


def role_of(name: str) -> Role:
    """The role with this name. Raises `InvalidInputError` for an unknown name."""
    for role in Role:
        if name == str(role):
            return role
    raise invalid_field("role", f"role must be one of {', '.join(map(str, Role))} (got {quoted(name)})")


def check_pattern(field: str, pattern: str) -> None:
    """Raise `InvalidInputError`, which names the field, unless `pattern` is a regular expression of RE2.

    Raises `UnicodeEncodeError` if UTF-8 cannot encode the pattern.
    """
    try:
        _compiled(pattern)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error
        raise invalid_field(
            field, f"{field} must be a regular expression of RE2 (got {quoted(pattern)}; {reason})"
        ) from error


def is_pattern(text: str) -> bool:
    """Whether the text is a regular expression of RE2."""
    try:
        _compiled(text)
    except (re2.error, UnicodeEncodeError):
        return False
    return True


def matches(pattern: str, text: str) -> bool:
    """Whether a regular expression matches the whole text, by code points: case and Unicode normalisation count.

    The time is proportional to the length of the text, whatever the pattern is, because patterns may come from tokens.
    An invalid pattern matches nothing, and no pattern matches text that UTF-8 cannot encode.
    """
    try:
        return is_pattern(pattern) and _compiled(pattern).fullmatch(text) is not None
    except UnicodeEncodeError:
        return False


def escaped(text: str) -> str:
    """The pattern that matches exactly this text."""
    return str(re2.escape(text))


@lru_cache(maxsize=10_000)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    # An invalid pattern of a token would write to standard error.
    options.log_errors = False
    # `.` matches every character: a name cannot leave a pattern by a line break.
    options.dot_nl = True
    # A pattern that would need more memory, in bytes, is invalid.
    options.max_mem = 1 << 20
    return re2.compile(pattern, options=options)


@dataclass(frozen=True, slots=True)
class Permission:
    """A role for the tags and payload types whose names match two patterns. `rule` says where it comes from."""

    role: Role
    rule: str
    tags: str = ANY
    types: str = ANY

    def covers(self, role: Role, tag: Object, payload_type: Object) -> bool:
        """Whether it gives `role` for this tag and payload type. For `All.ALL`, the pattern must be exactly `ANY`."""
        return self.role >= role and _within(self.tags, tag) and _within(self.types, payload_type)


# What the names of principals begin with, before a colon, unless it is the name of an issuer; and the other methods.
OWN_PREFIXES = ("token", "network", "user", "group", "session", "proxy", "jwt", "local")


@dataclass(frozen=True, slots=True)
class Principal:
    """A person, program or network on whose behalf a request is made, with its permissions.

    - `name`: for the change log and messages, such as `token:NAME`, `ISSUER:SUBJECT`, `network:NAME (ADDRESS)`, the
      name of a user, or the address of an unknown client.
    - `method`: how the principal was identified: `token`, `jwt`, `session`, `proxy` or `network`. It is empty if the
      principal was not identified.
    - `lacks`: why a principal was not identified, for the message of a refusal.
    - `may_everything`: there are no restrictions. It is set for commands, and for all clients with `CDB_OPEN_WRITES`.
    """

    name: str = ""
    method: str = ""
    permissions: tuple[Permission, ...] = ()
    may_everything: bool = False
    lacks: str = "the request has no token"

    @property
    def identity(self) -> str:
        """The name without the address, for the creators of detached objects; empty if the principal was not identified."""
        if self.method == "network":
            return self.name.partition(" (")[0]
        return self.name if self.method else ""

    def require_known(self) -> str:
        """The name of a person or program, cut as actors are.

        Raises `AuthenticationRequiredError` for all others, also for a network.
        """
        if self.method in ("", "network"):
            raise AuthenticationRequiredError(f"This needs a login or a token, and {self.lacks}.")
        return self.identity[:TEXT_LENGTH]

    def permission(self, role: Role, tag: Object = None, payload_type: Object = None) -> Permission | None:
        """The first permission that gives the role for this tag and payload type; None if there is none."""
        if self.may_everything:
            return Permission(Role.ADMINISTRATOR, "writes are open to all clients")
        covering = (permission for permission in self.permissions if permission.covers(role, tag, payload_type))
        return next(covering, None)

    def require(self, role: Role, tag: Object = None, payload_type: Object = None) -> None:
        """Raise an error unless a permission gives the role for this tag and payload type.

        Raises `NotPermittedError`, or `AuthenticationRequiredError` if the principal was not identified.
        """
        if self.may_everything or self.permission(role, tag, payload_type):
            return
        needed = needs(role, tag, payload_type)
        if not self.method:
            raise AuthenticationRequiredError(f"This needs {needed}, and {self.lacks}.")
        raise NotPermittedError(f"{self.name} has no permission for this: it needs {needed}.")


def needs(role: Role, tag: Object, payload_type: Object) -> str:
    """What an action needs, for messages: "the role manager for global tag run24 and all payload types"."""
    objects = [
        f"all {kind}s" if name is All.ALL else f"{kind} {name}"
        for kind, name in (("global tag", tag), ("payload type", payload_type))
        if name is not None
    ]
    return " for ".join([f"the role {role}", *([" and ".join(objects)] if objects else [])])


def _within(pattern: str, name: Object) -> bool:
    if name is None:
        return True
    return pattern == ANY if name is All.ALL else matches(pattern, name)


SYSTEM = Principal(may_everything=True)


@dataclass(frozen=True, slots=True)
class Origin:
    """The actor of a change, the actor's comment, and the principal, whose permissions the services check.

    The actor is the principal's name, a client's address, or a command's name. Commands may do everything. For a write by an
    accepted request, `request` is its number, and `requested_by` who made it.
    """

    actor: str = ""
    comment: str = ""
    principal: Principal = SYSTEM
    request: int | None = None
    requested_by: str = ""


# The origin of changes by commands and tests, which may do everything.
BY_THE_SYSTEM = Origin()
ALPHABET = string.digits + string.ascii_letters
RANDOM_LENGTH = 36
CHECKSUM_LENGTH = 6
PREFIX = "cdb_"
TOKEN = re.compile(rf"{PREFIX}([0-9A-Za-z]{{{RANDOM_LENGTH}}})([0-9A-Za-z]{{{CHECKSUM_LENGTH}}})", re.ASCII)


def new_token() -> str:
    """A new random token."""
    secret = "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return f"{PREFIX}{secret}{_checksum(secret)}"


def is_token(text: str) -> bool:
    """Whether the text has the format of a token, with the correct checksum. No such token need exist."""
    found = TOKEN.fullmatch(text)
    return found is not None and found[2] == _checksum(found[1])


def digest_of(token: str) -> str:
    """The digest that is stored instead of a token: SHA-256, hexadecimal."""
    return hashlib.sha256(token.encode()).hexdigest()


def _checksum(secret: str) -> str:
    number = zlib.crc32(secret.encode())
    digits = ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
