-- Store the response for an idempotency key that this transaction has claimed.
-- Parameters: actor, key, response text.
UPDATE "IdempotencyRecord" SET response = %(response)s WHERE actor = %(actor)s AND key = %(key)s
