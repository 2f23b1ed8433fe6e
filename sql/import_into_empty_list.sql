-- Insert the rows of import_rows.sql, which replace {rows}, into an empty payload list.
-- Parameters: list_id bigint; version integer: that of the list after the change; and those of import_rows.sql.
-- The rows are ordered by descending start, as in the lookup's index, so that its pages are filled one after the other.
INSERT INTO "PayloadIOV" (
    payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, payload_list_id, added_in
)
SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, revision, %(list_id)s, %(version)s
FROM ({rows}) AS imported
ORDER BY comb_iov DESC
