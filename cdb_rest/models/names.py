"""Lengths that the tables, the API's validation and the documentation share."""

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
