-- For each payload type, what a global tag has at a moment, and what it had before each change at which this changed or may have
-- changed, back to the first change before which the payload was another one: the rows of the function cdb_point_at, with
-- payload_type, step (0: the state that is asked for), and is_same (whether the valid payload is that of step 0).
-- Parameters: tag_id, number bigint: the tag and the change, null for the present; payload_types text[]; major, minor bigint: the
--   moment; inclusive boolean.
WITH RECURSIVE walk AS (
    SELECT kind.name AS payload_type, 0 AS step, true AS is_same, point.*
    FROM unnest(%(payload_types)s::text[]) AS kind (name)
    CROSS JOIN LATERAL cdb_point_at(
        %(tag_id)s, kind.name, %(number)s, %(major)s, %(minor)s, %(inclusive)s
    ) AS point
    UNION ALL
    SELECT walk.payload_type, walk.step + 1,
        coalesce(walk.is_valid, false) = coalesce(point.is_valid, false) AND (
            point.is_valid IS NOT TRUE
            OR (walk.payload_url, walk.checksum, walk.size, walk.extra)
                IS NOT DISTINCT FROM (point.payload_url, point.checksum, point.size, point.extra)
        ),
        point.*
    FROM walk
    CROSS JOIN LATERAL cdb_point_at(
        %(tag_id)s, walk.payload_type, walk.began - 1, %(major)s, %(minor)s, %(inclusive)s
    ) AS point
    WHERE walk.is_same AND walk.began IS NOT NULL
)
SELECT * FROM walk ORDER BY payload_type COLLATE "C", step
