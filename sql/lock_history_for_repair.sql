-- Lock the tables of the present and of the history against all writers, also against the deletion of old history. Readers are not
-- blocked. No parameters.
LOCK TABLE "GlobalTag", "PayloadList", "PayloadIOV", "GlobalTagChange", "PayloadListMembership", "PayloadListVersion",
    "PayloadIOVHistory" IN EXCLUSIVE MODE
