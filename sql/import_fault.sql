-- The first row of the import file with an error that involves several columns or rows: its number, start and end, and the number
-- of an earlier row with the same payload type and start, or null if its interval is empty.
-- Parameters: inclusive boolean: whether ends are inclusive.
SELECT number, major_iov, minor_iov, major_iov_end, minor_iov_end, CASE WHEN comb_iov = comb_before THEN number_before END
FROM (
    SELECT *, lag(comb_iov) OVER earlier AS comb_before, lag(number) OVER earlier AS number_before
    FROM cdb_import
    WINDOW earlier AS (PARTITION BY payload_type ORDER BY comb_iov, number)
) AS numbered
WHERE comb_iov = comb_before
    OR (major_iov_end, minor_iov_end) < (major_iov, minor_iov)
    OR (
        NOT %(inclusive)s AND (major_iov_end, minor_iov_end) = (major_iov, minor_iov)
        AND (major_iov_end, minor_iov_end) <> (9223372036854775807, 9223372036854775807)
    )
ORDER BY number
LIMIT 1
