-- Insert payload IOVs whose ids are known already.
-- Parameters: an array for each column, one element for each IOV.
INSERT INTO "PayloadIOV" (
    id, payload_list_id, major_iov, minor_iov, major_iov_end, minor_iov_end, payload_url, checksum, size, extra
)
SELECT * FROM unnest(
    %(ids)s::bigint[], %(payload_list_ids)s::bigint[], %(major_iovs)s::bigint[], %(minor_iovs)s::bigint[],
    %(major_iov_ends)s::bigint[], %(minor_iov_ends)s::bigint[], %(payload_urls)s::text[], %(checksums)s::text[],
    %(sizes)s::bigint[], %(extras)s::text[]
)
