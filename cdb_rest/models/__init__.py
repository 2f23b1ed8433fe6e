"""Models: the tables with their constraints and indexes, and querysets for queries of one table.

The names of tables and columns are those of nopayloaddb, so that SQL that was published for it still works.
"""

from cdb_rest.models.access import AccessChange, AccessRule, ApiToken, RevokedToken, RuleKind
from cdb_rest.models.adoption import AdoptedList, AdoptedTag, Adoption
from cdb_rest.models.change import ChangeAction, GlobalTagChange, PayloadTypeChange
from cdb_rest.models.global_tag import GlobalTag, GlobalTagStatus
from cdb_rest.models.history import DeletedGlobalTag, PayloadIOVHistory, PayloadListMembership, PayloadListVersion
from cdb_rest.models.internal import DatabaseProperty, IdempotencyRecord, Restoration
from cdb_rest.models.payload_iov import PAYLOAD_COLUMNS, ListedPayloadIOV, PayloadIOV
from cdb_rest.models.payload_list import PayloadList, PayloadType
from cdb_rest.models.request import ChangeRequest, RequestComment, RequestKind, RequestState
from cdb_rest.models.subscription import Subscription

__all__ = [
    "PAYLOAD_COLUMNS",
    "AccessChange",
    "AccessRule",
    "AdoptedList",
    "AdoptedTag",
    "Adoption",
    "ApiToken",
    "ChangeAction",
    "ChangeRequest",
    "DatabaseProperty",
    "DeletedGlobalTag",
    "GlobalTag",
    "GlobalTagChange",
    "GlobalTagStatus",
    "IdempotencyRecord",
    "ListedPayloadIOV",
    "PayloadIOV",
    "PayloadIOVHistory",
    "PayloadList",
    "PayloadListMembership",
    "PayloadListVersion",
    "PayloadType",
    "PayloadTypeChange",
    "RequestComment",
    "RequestKind",
    "RequestState",
    "Restoration",
    "RevokedToken",
    "RuleKind",
    "Subscription",
]
