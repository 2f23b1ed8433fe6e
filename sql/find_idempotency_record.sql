-- The record of an idempotency key: the digest of its request, and the response.
-- Parameters: key text.
SELECT request_digest, answer FROM "KeptAnswer" WHERE key = %(key)s
