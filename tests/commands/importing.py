"""Functions that run `import_iovs` on a file and read the tables before and after."""

import io
import tempfile
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from cdb_rest.exports.export import Form, Selection, export
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.moment import AFTER_ALL, Interval, Moment

HEADER = "payload_type,payload_url,checksum,size,major_iov,minor_iov,major_iov_end,minor_iov_end,revision\n"
EVER = Interval(Moment(0, 0), AFTER_ALL)


def exported(tag):
    return b"".join(export(Selection(tag, None, EVER), Form.CSV))


def run(content, *arguments, tag="tag"):
    """What the command prints. `content` is the file's, in bytes or text."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "file.csv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        out = io.StringIO()
        call_command("import_iovs", str(file), "--global-tag", tag, *arguments, stdout=out)
        return out.getvalue()


def refusal(content, *arguments, **options):
    """The one line that the command ends with; it stores nothing."""
    before = state()
    with pytest.raises(CommandError) as raised:
        run(content, *arguments, **options)
    assert state() == before
    assert "\n" not in str(raised.value)
    return str(raised.value)


def state():
    kinds = (GlobalTag, PayloadType, PayloadList, PayloadIOV, GlobalTagChange)
    return [sorted(kind.objects.values_list()) for kind in kinds]
