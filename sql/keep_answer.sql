-- Keep the answer for an idempotency key that this transaction has claimed.
-- Parameters: key, answer text.
UPDATE "KeptAnswer" SET answer = %(answer)s WHERE key = %(key)s
