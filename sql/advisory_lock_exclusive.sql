-- Take the advisory locks of global tags in exclusive mode until the transaction ends. It waits for the transactions that have
-- a shared lock, and later ones wait for it.
-- Parameters: tag_ids bigint[], in ascending order.
SELECT pg_advisory_xact_lock(hashtextextended('cdb global tag ' || tag_id, 0))
FROM unnest(%(tag_ids)s::bigint[]) AS tag_id
