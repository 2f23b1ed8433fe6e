-- Delete up to 100 expired idempotency records, that of one key first. Records that another transaction has locked are skipped.
-- Parameters: key text, hours integer: the time after which a record expires.
DELETE FROM "IdempotencyRecord"
WHERE id IN (
    SELECT id FROM "IdempotencyRecord"
    WHERE created < statement_timestamp() - make_interval(hours => %(hours)s)
    ORDER BY key <> %(key)s, created
    LIMIT 100
    FOR UPDATE SKIP LOCKED
)
