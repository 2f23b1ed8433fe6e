-- Starts and ends of the rows of a payload list that may be valid in a window, by start, as four 64-bit integers each.
-- Parameters: list bigint, version integer: the list, and its version, null for the present; and those of window_rows.sql, whose text
--   replaces {rows}.
-- Expected plan: that of window_rows.sql.
COPY (
SELECT major_iov, minor_iov, major_iov_end, minor_iov_end
FROM (
    {rows}
) AS iov
) TO STDOUT WITH (FORMAT binary)
