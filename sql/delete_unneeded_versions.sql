-- Delete versions of a payload list to which no revision with history resolves, up to a number of rows. Returns how many.
-- Parameters: list_id bigint; numbers int8multirange: the numbers of the needed ones; last_number bigint: this one and later ones
--   stay; batch integer.
WITH deleted AS (
    DELETE FROM "PayloadListVersion"
    WHERE payload_list_id = %(list_id)s AND number IN (
        SELECT number
        FROM "PayloadListVersion"
        WHERE payload_list_id = %(list_id)s AND number < %(last_number)s AND NOT %(numbers)s::int8multirange @> number
        ORDER BY number
        LIMIT %(batch)s
    )
    RETURNING 1
)
SELECT count(*) FROM deleted
