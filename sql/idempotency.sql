-- Repeated requests.


-- name: claim_idempotency_key
-- Claim an idempotency key for a request. Inserts no row if the key exists. Waits for a transaction that is claiming it.
-- Parameters: actor, key, request_digest text.
INSERT INTO "IdempotencyRecord" (actor, key, request_digest, response) VALUES (%(actor)s, %(key)s, %(request_digest)s, '')
ON CONFLICT (actor, key) DO NOTHING


-- name: find_idempotency_record
-- The record of an idempotency key: the digest of its request, and the response.
-- Parameters: actor, key text.
SELECT request_digest, response FROM "IdempotencyRecord" WHERE actor = %(actor)s AND key = %(key)s


-- name: store_idempotent_response
-- Store the response for an idempotency key that this transaction has claimed.
-- Parameters: actor, key, response text.
UPDATE "IdempotencyRecord" SET response = %(response)s WHERE actor = %(actor)s AND key = %(key)s


-- name: delete_idempotency_records
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
