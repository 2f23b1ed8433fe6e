-- Change the interval and the payload list of payload IOVs.
-- Parameters: ids, payload_list_ids (null: detached), major_iovs, minor_iovs, major_iov_ends, minor_iov_ends bigint[], added_ins
--   integer[] (versions of the lists), with one element for each IOV.
UPDATE "PayloadIOV" AS iov
SET payload_list_id = place.payload_list_id, major_iov = place.major_iov, minor_iov = place.minor_iov,
    major_iov_end = place.major_iov_end, minor_iov_end = place.minor_iov_end,
    added_in = place.added_in, updated = statement_timestamp()
FROM unnest(
    %(ids)s::bigint[], %(payload_list_ids)s::bigint[], %(major_iovs)s::bigint[], %(minor_iovs)s::bigint[],
    %(major_iov_ends)s::bigint[], %(minor_iov_ends)s::bigint[], %(added_ins)s::integer[]
) AS place (id, payload_list_id, major_iov, minor_iov, major_iov_end, minor_iov_end, added_in)
WHERE iov.id = place.id
