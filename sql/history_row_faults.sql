-- Payload lists with two versions of a payload IOV, that is of one start, whose lives overlap: kind, tag, list, description.
-- Parameters: list_ids bigint[].
-- It reads and sorts all rows of the lists, present and past. A present row lives on without end.
SELECT 'two versions', NULL::bigint, row.payload_list_id,
    format('%%s overlaps of lives, such as at start %%s in version %%s', count(*), min(row.comb_iov), min(row.added_in))
FROM (
    SELECT payload_list_id, comb_iov, added_in, max(removed_in) OVER (
        PARTITION BY payload_list_id, comb_iov ORDER BY added_in, removed_in
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS earlier_removed_in
    FROM (
        SELECT payload_list_id, comb_iov, added_in, removed_in
        FROM "PayloadIOVHistory"
        WHERE row_start IS NULL AND payload_list_id = ANY(%(list_ids)s)
        UNION ALL
        SELECT payload_list_id, comb_iov, added_in, 2147483647 FROM "PayloadIOV" WHERE payload_list_id = ANY(%(list_ids)s)
    ) AS version_of_row
) AS row
WHERE row.earlier_removed_in > row.added_in
GROUP BY row.payload_list_id
ORDER BY row.payload_list_id
