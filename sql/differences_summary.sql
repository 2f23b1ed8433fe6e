-- For each payload type that differs, in the order of the rows: its name, the number of differences, and since and until of the first
-- and of the last one. Parameters: those of differences.sql, whose text replaces {rows}.
SELECT payload_type, count(*), min(since), (min(ARRAY[since, until]))[2], max(since), (max(ARRAY[since, until]))[2]
FROM (
{rows}
) AS found
GROUP BY payload_type
ORDER BY payload_type COLLATE "C"
