-- The ids of all payload lists that have stored versions or areas of the past, in order. No parameters.
-- It reads one index entry for each list and table, not all rows.
WITH RECURSIVE list (id) AS (
    SELECT least(
        (SELECT min(payload_list_id) FROM "PayloadListVersion"), (SELECT min(payload_list_id) FROM "PayloadIOVHistory")
    )
    UNION ALL
    SELECT least(
        (SELECT min(payload_list_id) FROM "PayloadListVersion" WHERE payload_list_id > list.id),
        (SELECT min(payload_list_id) FROM "PayloadIOVHistory" WHERE payload_list_id > list.id)
    )
    FROM list
    WHERE list.id IS NOT NULL
)
SELECT id FROM list WHERE id IS NOT NULL
