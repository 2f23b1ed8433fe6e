"""The rules for names and lengths of texts, shared by tables, API, commands and documentation."""

import re

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
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
NAME_RULE = 'A name must not contain "/" or control characters, nor begin or end with a space, nor be "." or "..".'


def fits_into_path(name: str) -> bool:
    """Whether `name` satisfies `NAME_RULE`, so that it can be a segment of a URL path."""
    return not ("/" in name or name in (".", "..") or CONTROL_CHARACTER.search(name) or name != name.strip())
