-- Insert payload IOVs whose ids are known already. The columns of the payload are put in at {payload}, and their parameters,
-- as arrays of the columns' types, at {payload_arrays}.
-- Parameters: an array for each column, one element for each IOV.
INSERT INTO "PayloadIOV" (
    id, payload_list_id, major_iov, minor_iov, major_iov_end, minor_iov_end, {payload}
)
SELECT * FROM unnest(
    %(ids)s::bigint[], %(payload_list_ids)s::bigint[], %(major_iovs)s::bigint[], %(minor_iovs)s::bigint[],
    %(major_iov_ends)s::bigint[], %(minor_iov_ends)s::bigint[], {payload_arrays}
)
