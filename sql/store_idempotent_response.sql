-- Store the response for an idempotency key that this transaction has claimed.
-- Parameters: key, response text.
UPDATE "KeptAnswer" SET answer = %(response)s WHERE key = %(key)s
