-- Store all IOVs of payload lists in the history, before they are deleted.
-- Parameters: list_ids bigint[]. Placeholders for the payload columns: {payload} and {iov.payload}.
INSERT INTO "PayloadIOVHistory" (
    payload_list_id, node, comb_iov, until, added_in, removed_in, iov_id, major_iov, minor_iov, major_iov_end, minor_iov_end,
    created, {payload}
)
SELECT iov.payload_list_id, cdb_fork_node(iov.added_in, list.version + 1), iov.comb_iov,
    lag(iov.comb_iov) OVER (PARTITION BY iov.payload_list_id ORDER BY iov.comb_iov DESC NULLS LAST),
    iov.added_in, list.version + 1, iov.id, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end, iov.created,
    {iov.payload}
FROM "PayloadList" AS list
JOIN "PayloadIOV" AS iov ON iov.payload_list_id = list.id
WHERE list.id = ANY(%(list_ids)s)
