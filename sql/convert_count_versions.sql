-- For each stay of a payload list in cdb_logged_stay, the number of changes of its payload IOVs after its first change.
-- Parameters: since bigint: the oldest change that is converted.
SELECT stay.stay, count(DISTINCT step.number)
FROM cdb_logged_stay AS stay
LEFT JOIN (
    SELECT life.stay, step.number
    FROM cdb_logged_life AS life
    CROSS JOIN LATERAL (VALUES (life.number), (life.end_number)) AS step (number)
) AS step ON step.stay = stay.stay AND step.number > greatest(stay.first, %(since)s)
    AND step.number < coalesce(stay.last, 9223372036854775807)
GROUP BY stay.stay
