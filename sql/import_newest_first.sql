-- The rows of import_rows.sql, which replace {rows}, by descending start. Parameters: those of import_rows.sql.
SELECT number, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, revision AS extra
FROM ({rows}) AS imported
ORDER BY comb_iov DESC
