-- Claim an idempotency key for a request; inserts no row if the key is there. Waits for a transaction that is claiming it.
-- Parameters: key, request_digest text.
INSERT INTO "KeptAnswer" (key, request_digest, answer) VALUES (%(key)s, %(request_digest)s, '')
ON CONFLICT (key) DO NOTHING
