-- The rows of import_rows.sql, put in at {rows}, from the last start to the first.
SELECT number, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, revision AS extra
FROM ({rows}) AS imported
ORDER BY comb_iov DESC
