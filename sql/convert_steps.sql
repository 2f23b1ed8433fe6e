-- The payload IOVs that come into a list and leave it during a stay, in the order of changes: number, whether it leaves, id in
-- cdb_logged_life, start. What was there before comes with the first change.
-- Parameters: stay integer; since bigint: the first change.
SELECT step.number, step.leaves, life.id, life.major_iov, life.minor_iov
FROM cdb_logged_life AS life
CROSS JOIN LATERAL (
    VALUES (greatest(life.number, %(since)s), false), (life.end_number, true)
) AS step (number, leaves)
WHERE life.stay = %(stay)s AND life.end_number > %(since)s AND step.number < 9223372036854775807
ORDER BY step.number
