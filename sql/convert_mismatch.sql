-- The newest logged change of a global tag that contradicts the later ones: number, name of the list, id of the payload IOV (or
-- null), reason. No row if there is none. Parameters: number bigint: the newest logged change. Placeholder: {payload}.
-- Only the changes after it can be undone. Two payload IOVs with the same start cannot be in the history either; then the
-- number is the last one of a state with both.
WITH step AS (
    SELECT number, is_added, stay, iov_id, content, lead(is_added) OVER steps AS next_is_added,
        lead(content) OVER steps AS next_content, lag(is_added) OVER steps AS previous_is_added
    FROM (
        SELECT number, is_added, stay, iov_id, ROW (comb_iov, major_iov_end, minor_iov_end, {payload})::text AS content
        FROM cdb_logged_row
    ) AS logged
    WINDOW steps AS (PARTITION BY iov_id, stay ORDER BY number, is_added)
),
life AS (
    SELECT number, end_number, stay, iov_id, max(end_number) OVER (
        PARTITION BY stay, comb_iov ORDER BY coalesce(number, 0) ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS earlier_end
    FROM cdb_logged_life
)
SELECT mismatch.number, stay.name, mismatch.iov_id, mismatch.reason
FROM (
    SELECT number, stay, iov_id, CASE
        WHEN stay IS NULL THEN 'it changed a payload list that was not in the tag'
        WHEN is_added AND next_is_added IS NOT FALSE THEN 'it was added, but was not there later'
        WHEN is_added AND next_content <> content THEN 'it was added, but was different later'
        WHEN NOT is_added AND NOT next_is_added THEN 'it was removed, but was there later'
    END AS reason
    FROM step
    WHERE number < 9223372036854775807
    UNION ALL
    SELECT stay.first, stay.stay, step.iov_id, 'it was there, but was not added'
    FROM step
    JOIN cdb_logged_stay AS stay ON stay.stay = step.stay
    WHERE stay.came_empty AND NOT step.is_added AND step.previous_is_added IS NULL
    UNION ALL
    SELECT stay.first, stay.stay, NULL, 'it has payload IOVs that were not added'
    FROM cdb_logged_stay AS stay
    CROSS JOIN LATERAL cdb_version_at(stay.list_id, %(number)s) AS list_version (version)
    WHERE stay.last IS NULL AND stay.came_empty AND (
        SELECT count(*) FROM cdb_logged_life AS present
        WHERE present.stay = stay.stay AND present.end_number = 9223372036854775807
    ) < (
        SELECT count(*) FROM "PayloadIOV"
        WHERE payload_list_id = stay.list_id AND added_in <= list_version.version
    ) + (
        SELECT count(*) FROM "PayloadIOVHistory"
        WHERE payload_list_id = stay.list_id AND row_start IS NULL AND added_in <= list_version.version
            AND removed_in > list_version.version
    )
    UNION ALL
    SELECT least(earlier_end, end_number) - 1, stay, iov_id, 'another payload IOV had the same start'
    FROM life
    WHERE earlier_end > coalesce(number, 0)
) AS mismatch
LEFT JOIN cdb_logged_stay AS stay ON stay.stay = mismatch.stay
WHERE mismatch.reason IS NOT NULL
ORDER BY mismatch.number DESC, mismatch.iov_id
LIMIT 1
