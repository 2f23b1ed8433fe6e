-- Insert payload IOVs with given ids.
-- Parameters: an array for each column, with one element for each IOV. Placeholders: {payload} for the payload columns, and
-- {payload_arrays} for their parameters, arrays of the types of the columns.
INSERT INTO "PayloadIOV" (
    id, payload_list_id, major_iov, minor_iov, major_iov_end, minor_iov_end, added_in, {payload}
)
SELECT * FROM unnest(
    %(ids)s::bigint[], %(payload_list_ids)s::bigint[], %(major_iovs)s::bigint[], %(minor_iovs)s::bigint[],
    %(major_iov_ends)s::bigint[], %(minor_iov_ends)s::bigint[], %(added_ins)s::integer[],
    {payload_arrays}
)
