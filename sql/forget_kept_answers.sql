-- Delete a few of the kept answers that are too old, that of one key first, and leave those that somebody else is at.
-- Parameters: key text, hours integer.
DELETE FROM "KeptAnswer"
WHERE id IN (
    SELECT id FROM "KeptAnswer"
    WHERE created < statement_timestamp() - make_interval(hours => %(hours)s)
    ORDER BY key <> %(key)s, created
    LIMIT 100
    FOR UPDATE SKIP LOCKED
)
