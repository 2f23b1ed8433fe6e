"""The records of `rows.copy`: PostgreSQL's binary COPY format, with the columns of compile_rows."""

import re

import numpy as np

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
# The number of columns; then each column with its length in front: the number of the list, the start and the end of the IOV; and
# the length of the row's JSON array, which is the last column.
COLUMNS = 6
HEAD_TYPE = np.dtype(
    [
        ("columns", ">i2"),
        ("list_length", ">i4"),
        ("list", ">i4"),
        ("major_length", ">i4"),
        ("major", ">i8"),
        ("minor_length", ">i4"),
        ("minor", ">i8"),
        ("major_end_length", ">i4"),
        ("major_end", ">i8"),
        ("minor_end_length", ">i4"),
        ("minor_end", ">i8"),
        ("text_length", ">i4"),
    ]
)
HEAD_BYTES = HEAD_TYPE.itemsize
# The elements of a row's JSON array, as they are written.
ELEMENT = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+|null')
ELEMENTS = 9
# As json_build_object writes it.
OBJECT = (
    b'{"payload_type_name" : %b, "payload_url" : %b, "checksum" : %b, "size" : %b, "major_iov" : %b, "minor_iov" : %b, '
    b'"major_iov_end" : %b, "minor_iov_end" : %b, "revision" : %b}'
)


def as_object(row: bytes) -> bytes:
    """A row of a lookup's answer as a JSON object, from the same row as a JSON array, byte for byte as PostgreSQL writes it."""
    elements = row[1:-1].split(b", ")
    if len(elements) != ELEMENTS:
        # A text contains the separator.
        elements = ELEMENT.findall(row)
    return OBJECT % tuple(elements)
