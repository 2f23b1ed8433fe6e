-- The rows of one payload type in the import file, as they are inserted. An end that overlaps the next row is replaced by
-- the start of that row, because the row is valid only until then. An open end is kept: the row is valid up to the next start.
-- Parameters: payload_type text; inclusive boolean: whether ends are inclusive.
SELECT number, payload_url, checksum, size, major_iov, minor_iov, revision, comb_iov,
    CASE
        WHEN NOT overruns THEN major_iov_end
        WHEN %(inclusive)s AND next_minor = 0 THEN next_major - 1
        ELSE next_major
    END AS major_iov_end,
    CASE
        WHEN NOT overruns THEN minor_iov_end
        WHEN NOT %(inclusive)s THEN next_minor
        WHEN next_minor = 0 THEN 9223372036854775807
        ELSE next_minor - 1
    END AS minor_iov_end
FROM (
    SELECT *, coalesce(
        (major_iov_end, minor_iov_end) <> (9223372036854775807, 9223372036854775807)
        AND (
            (major_iov_end, minor_iov_end) > (next_major, next_minor)
            OR (%(inclusive)s AND (major_iov_end, minor_iov_end) = (next_major, next_minor))
        ),
        false
    ) AS overruns
    FROM (
        SELECT *, lead(major_iov) OVER later AS next_major, lead(minor_iov) OVER later AS next_minor
        FROM cdb_import
        WHERE payload_type = %(payload_type)s
        WINDOW later AS (ORDER BY comb_iov)
    ) AS followed
) AS judged
