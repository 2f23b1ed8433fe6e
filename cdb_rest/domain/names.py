"""What the tables, the API's validation, the commands and the documentation share about names and lengths."""

import re

# Characters of the names of global tags, statuses and payload types.
NAME_LENGTH = 80
# A payload list is called "<payload type>_<id>", and an id has up to 19 digits.
LIST_NAME_LENGTH = NAME_LENGTH + 20
# Characters of payload URLs, checksums and descriptions.
TEXT_LENGTH = 255
# Digits of a revision, which clients convert to a 64-bit integer.
REVISION_LENGTH = 19
# Characters of the comment of a change.
COMMENT_LENGTH = 1000

CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
NAME_RULE = 'A name must not contain "/" or control characters, nor begin or end with a space, nor be "." or "..".'


def fits_into_path(name: str) -> bool:
    """Whether `name` keeps `NAME_RULE`, so that it can stand in a URL's path."""
    return not ("/" in name or name in (".", "..") or CONTROL_CHARACTER.search(name) or name != name.strip())
