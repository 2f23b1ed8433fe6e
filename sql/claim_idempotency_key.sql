-- Claim an idempotency key for a request. Inserts no row if the key exists. Waits for a transaction that is claiming it.
-- Parameters: key, request_digest text.
INSERT INTO "KeptAnswer" (key, request_digest, answer) VALUES (%(key)s, %(request_digest)s, '')
ON CONFLICT (key) DO NOTHING
