"""The format of this service's own tokens: ``cdb_``, 36 random letters and digits, and 6 for a checksum.

The prefix lets scanners for secrets recognise a token. The checksum lets them, and this service, tell a token from other
text without asking the database. A token has 214 random bits, so its digest needs no salt and cannot be reversed.
"""

import hashlib
import re
import secrets
import string
import zlib

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
