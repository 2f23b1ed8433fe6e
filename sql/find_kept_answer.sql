-- What is kept for an idempotency key: the digest of its request, and the answer.
-- Parameters: key text.
SELECT request_digest, answer FROM "KeptAnswer" WHERE key = %(key)s
