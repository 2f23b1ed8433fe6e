-- Rows that violate the rules of payload lists: empty rows, rows with the same start as another, and closed rows that overlap the
-- next. Returns kind of fault, names of tag and list, list id, IOV id, URL, start and end.
-- Parameters: inclusive boolean: whether ends are inclusive; tag text: check the lists of this tag only (null: all lists).
-- It reads and sorts all rows once.
WITH attached AS (
    SELECT iov.id, iov.payload_list_id, iov.comb_iov, iov.payload_url, iov.major_iov, iov.minor_iov, iov.major_iov_end,
        iov.minor_iov_end,
        (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807) AS is_open,
        iov.major_iov_end + iov.minor_iov_end * 0.0000000000000000001 AS until,
        lag(iov.comb_iov) OVER list AS next_start
    FROM "PayloadIOV" AS iov
    WHERE iov.payload_list_id IN (
        SELECT list.id FROM "PayloadList" AS list LEFT JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id
        WHERE %(tag)s IS NULL OR tag.name = %(tag)s
    )
    WINDOW list AS (PARTITION BY iov.payload_list_id ORDER BY iov.comb_iov DESC NULLS LAST)
),
fault AS (
    SELECT *, CASE
        WHEN NOT is_open AND (until < comb_iov OR until = comb_iov AND NOT %(inclusive)s) THEN 'empty'
        WHEN comb_iov = next_start THEN 'equal start'
        WHEN NOT is_open AND (until > next_start OR until = next_start AND %(inclusive)s) THEN 'overlap'
    END AS fault
    FROM attached
)
SELECT fault.fault, coalesce(tag.name, ''), list.name, list.id, fault.id, fault.payload_url,
    fault.major_iov, fault.minor_iov, fault.major_iov_end, fault.minor_iov_end
FROM fault
JOIN "PayloadList" AS list ON list.id = fault.payload_list_id
LEFT JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id
WHERE fault.fault IS NOT NULL
ORDER BY tag.name, list.name, fault.comb_iov, fault.id
