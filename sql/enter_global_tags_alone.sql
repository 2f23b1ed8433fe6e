-- Have global tags alone until the transaction ends; waits for those that share in them, and lets no more of them in meanwhile.
-- Parameters: tag_ids bigint[], in their order.
SELECT pg_advisory_xact_lock(hashtextextended('cdb global tag ' || tag_id, 0))
FROM unnest(%(tag_ids)s::bigint[]) AS tag_id
