-- Read the payload IOVs of logged changes into cdb_logged_row, with the stay of their payload list (null if it was not in the tag).
-- Parameters: ids bigint[]: the changes. Placeholders: {payload} and {payload_from_log}.
INSERT INTO cdb_logged_row (
    number, is_added, stay, iov_id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, {payload}
)
SELECT logged.number, logged.is_added, stay.stay, logged.iov_id,
    logged.major_iov + logged.minor_iov * 0.0000000000000000001, logged.major_iov, logged.minor_iov,
    (logged.value ->> 'major_iov_end')::bigint, (logged.value ->> 'minor_iov_end')::bigint, {payload_from_log}
FROM (
    SELECT change.number, side.is_added, iov.value, (iov.value ->> 'id')::bigint AS iov_id,
        iov.value ->> 'payload_list' AS list_name, (iov.value ->> 'major_iov')::bigint AS major_iov,
        (iov.value ->> 'minor_iov')::bigint AS minor_iov
    FROM "GlobalTagChange" AS change
    CROSS JOIN LATERAL (VALUES (false, change.logged_before), (true, change.logged_after)) AS side (is_added, document)
    CROSS JOIN LATERAL jsonb_array_elements(side.document -> 'payload_iovs') AS iov (value)
    WHERE change.id = ANY(%(ids)s)
) AS logged
LEFT JOIN cdb_logged_stay AS stay ON stay.name = logged.list_name AND CASE
    WHEN logged.is_added THEN stay.first <= logged.number AND (stay.last IS NULL OR stay.last > logged.number)
    ELSE stay.first < logged.number AND (stay.last IS NULL OR stay.last >= logged.number)
END
