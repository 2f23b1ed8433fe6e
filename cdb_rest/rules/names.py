"""The rules for names and lengths of texts, shared by tables, API, commands and documentation."""

import re

from cdb_rest.rules.errors import invalid_field, quoted

# Maximum length in characters of the names of global tags, statuses and payload types.
NAME_LENGTH = 80
# Maximum length of the name of a payload list, "<payload type>_<id>". An id has up to 19 digits.
LIST_NAME_LENGTH = NAME_LENGTH + 20
# Maximum length of payload URLs, checksums and descriptions.
TEXT_LENGTH = 255
# Maximum number of digits of a payload's revision. Clients convert it to a 64-bit integer.
REVISION_LENGTH = 19
# Maximum length of the comment of a change.
COMMENT_LENGTH = 1000
# C0, DEL, C1, the two line separators of Unicode, and halves of surrogate pairs, which no database stores.
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
PROGRAM_NAME_RULE = (
    'A name must not contain "/" or control characters, nor begin or end with a space, nor be "." or "..".'
)

# A character that a new name cannot have: not printable ASCII, or with a meaning in URLs, HTML or file names.
FORBIDDEN_IN_NAME = re.compile(r"""[^!-~]|[/\\#&?+%"<>,@`]""")
# Another first character would make a name look like an option of a command, or hide a file.
FORBIDDEN_AT_START = re.compile(r"[^A-Za-z0-9_]")
NAME_RULE = (
    f'A name has 1 to {NAME_LENGTH} characters of printable ASCII, without spaces and / \\ # & ? + % " < > , @ `, and begins '
    "with a letter, a digit or _."
)
# The fixed segments of the paths in `cdb_rest.routes.ROUTES`.
PATH_WORDS = frozenset(
    (
        "accept", "affected", "attach", "bulk", "bulk_piov", "by-name", "change-status", "changes", "clear", "clone",
        "cloneGlobalTag", "comments", "coverage", "delete", "deleteGlobalTag", "deleteGlobalTagStatus", "deletePayloadIOV",
        "deletePayloadList", "deletePayloadType", "description", "diff", "explain", "export", "global-tags", "globalTag",
        "globalTags", "gt", "gtPayloadLists", "gt_change_status", "gtstatus", "import", "insert", "limits", "payload-iovs",
        "payload-lists", "payload-types", "payloadiovs", "payloadiovs_orm_max", "payloadiovs_orm_orderby",
        "payloadiovsrange", "piov", "piov_attach", "pl", "pl_attach", "pt", "query", "range", "reject", "requests",
        "revert", "settings", "starts", "statuses", "undo", "user_settings", "uses", "whoami", "withdraw",
    )
)  # fmt: skip


def name_fault(name: str, pattern: str = "") -> str:
    """Why `name` cannot be the name of a new global tag, payload type or status; empty if it can.

    `pattern` is a regular expression that replaces `NAME_RULE` and must match the whole name. A slash, control
    characters, the names `.` and `..`, the words of the API's paths and the maximum length are refused in any case.
    """
    if not name:
        return "The name is empty."
    if len(name) > NAME_LENGTH:
        return f"The name has {len(name):,} characters; at most {NAME_LENGTH} are allowed."
    if pattern:
        found = re.search("/", name) or CONTROL_CHARACTER.search(name)
        rule = f"Names must match {pattern} (CDB_NAME_PATTERN), without slashes and control characters."
    else:
        found = FORBIDDEN_AT_START.match(name) or FORBIDDEN_IN_NAME.search(name)
        rule = NAME_RULE
    if found:
        code = f"U+{ord(found[0]):04X}"
        return f"The name {quoted(name)} has the character {quoted(found[0])} ({code}) at position {found.start() + 1}. {rule}"
    if name in PATH_WORDS or name in (".", ".."):
        return f"The name {quoted(name)} is not allowed, because it is a word of the API's paths."
    if pattern and not re.fullmatch(pattern, name):
        return f"The name {quoted(name)} is not allowed. {rule}"
    return ""


def check_new_name(name: str, pattern: str = "") -> None:
    """Raise `InvalidInputError` if `name_fault` finds a fault."""
    if fault := name_fault(name, pattern):
        raise invalid_field("name", fault)


def is_program_name(name: str) -> bool:
    """Whether the name of a program, which has a token, satisfies `PROGRAM_NAME_RULE`."""
    return not ("/" in name or name in (".", "..") or CONTROL_CHARACTER.search(name) or name != name.strip())
