-- Fill cdb_logged_life: each payload IOV that a logged change removed, or that was there at the end, with the change that added it.
-- `created` is that of the present row, else the time of the change that first added the IOV. Parameters: tag text.
-- Placeholders: {payload} and {iov.payload}.
INSERT INTO cdb_logged_life (
    number, end_number, is_added, stay, iov_id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, created, {payload}
)
SELECT iov.begin_number, iov.number, false, iov.stay, iov.iov_id, iov.comb_iov, iov.major_iov, iov.minor_iov,
    iov.major_iov_end, iov.minor_iov_end, coalesce(iov.created, present.created, first_change.created), {iov.payload}
FROM (
    SELECT logged.*,
        CASE WHEN lag(logged.is_added) OVER steps THEN lag(logged.number) OVER steps END AS begin_number,
        min(logged.number) FILTER (WHERE logged.is_added) OVER (PARTITION BY logged.iov_id) AS first_number
    FROM cdb_logged_row AS logged
    WHERE logged.stay IS NOT NULL
    WINDOW steps AS (PARTITION BY logged.iov_id, logged.stay ORDER BY logged.number, logged.is_added)
) AS iov
LEFT JOIN "PayloadIOV" AS present ON present.id = iov.iov_id
LEFT JOIN "GlobalTagChange" AS first_change ON first_change.global_tag = %(tag)s AND first_change.number = iov.first_number
WHERE NOT iov.is_added;
ANALYZE cdb_logged_life
