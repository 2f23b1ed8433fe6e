-- Insert the rows of import_rows.sql, put in at {rows}, into a payload list that has none. Parameters: list_id bigint, and theirs.
-- The newest come first, which is the order of the lookup's index: its pages then fill one after the other.
INSERT INTO "PayloadIOV" (
    payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, payload_list_id
)
SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, revision, %(list_id)s
FROM ({rows}) AS imported
ORDER BY comb_iov DESC
