-- Copy the IOVs of paired lists into the table {target}.
INSERT INTO {target} (
    payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, payload_list_id
)
SELECT iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    iov.extra, pair.copy_id
FROM pair
JOIN "PayloadIOV" AS iov ON iov.payload_list_id = pair.source_id
