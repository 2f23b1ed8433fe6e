-- Claim an idempotency key for a request. Inserts no row if the key exists. Waits for a transaction that is claiming it.
-- Parameters: actor, key, request_digest text.
INSERT INTO "IdempotencyRecord" (actor, key, request_digest, response) VALUES (%(actor)s, %(key)s, %(request_digest)s, '')
ON CONFLICT (actor, key) DO NOTHING
