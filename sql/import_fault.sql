-- The first line of a payload type that is wrong beside its own columns: its line, its start and end, and the line that has the
-- same start already, or null where it is the interval that is empty.
-- Parameters: payload_type text; inclusive boolean: ends are the last moment inside.
SELECT line, major_iov, minor_iov, major_iov_end, minor_iov_end, CASE WHEN comb_iov = comb_before THEN line_before END
FROM (
    SELECT *, lag(comb_iov) OVER earlier AS comb_before, lag(line) OVER earlier AS line_before
    FROM cdb_import
    WHERE payload_type = %(payload_type)s
    WINDOW earlier AS (ORDER BY comb_iov, line)
) AS numbered
WHERE comb_iov = comb_before
    OR (major_iov_end, minor_iov_end) < (major_iov, minor_iov)
    OR (
        NOT %(inclusive)s AND (major_iov_end, minor_iov_end) = (major_iov, minor_iov)
        AND (major_iov_end, minor_iov_end) <> (9223372036854775807, 9223372036854775807)
    )
ORDER BY line
LIMIT 1
