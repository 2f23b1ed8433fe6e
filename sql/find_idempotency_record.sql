-- The record of an idempotency key: the digest of its request, and the response.
-- Parameters: actor, key text.
SELECT request_digest, response FROM "IdempotencyRecord" WHERE actor = %(actor)s AND key = %(key)s
