"""Tables with their constraints and indexes, and querysets for what one table can answer.

Table and column names are those of nopayloaddb, so that the SQL that was published for it still runs.
"""

from cdb_rest.models.change import ChangeAction, GlobalTagChange
from cdb_rest.models.global_tag import GlobalTag, GlobalTagStatus
from cdb_rest.models.internal import DatabaseProperty, KeptAnswer
from cdb_rest.models.payload_iov import PAYLOAD_COLUMNS, PayloadIOV
from cdb_rest.models.payload_list import PayloadList, PayloadType

__all__ = [
    "PAYLOAD_COLUMNS",
    "ChangeAction",
    "DatabaseProperty",
    "GlobalTag",
    "GlobalTagChange",
    "GlobalTagStatus",
    "KeptAnswer",
    "PayloadIOV",
    "PayloadList",
    "PayloadType",
]
