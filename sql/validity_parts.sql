-- The parts of a window in which a payload list has a valid row, in the order of their starts, with the payload. since and until are
-- combined moments, until exclusive.
-- Parameters: since, until numeric: the window; inclusive boolean: whether ends are inclusive. Placeholder: {rows}: window_rows.sql.
-- A row is valid from its start up to its end, but not beyond the next start in the list, also if the row there is empty.
-- Expected plan: that of window_rows.sql.
SELECT since, until, payload_url, checksum, size, extra
FROM (
    SELECT greatest(iov.comb_iov, %(since)s) AS since,
        least(
            cdb_end(iov.major_iov_end, iov.minor_iov_end, %(inclusive)s),
            lead(iov.comb_iov) OVER (ORDER BY iov.comb_iov ASC NULLS FIRST),
            %(until)s
        ) AS until,
        payload_url, checksum, size, extra
    FROM (
        {rows}
    ) AS iov
) AS part
WHERE since < until
