-- Copy payload IOVs with their payload lists from the client, as tab-separated text. No parameters.
COPY "PayloadIOV" (
    payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, payload_list_id, added_in
) FROM STDIN
