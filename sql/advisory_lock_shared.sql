-- Take the advisory locks of global tags in shared mode until the transaction ends. Many writers can have them at a time.
-- Parameters: tag_ids bigint[], in ascending order.
-- With row locks only, new shared locks could overtake a waiting exclusive lock without end. Advisory locks have a queue.
SELECT pg_advisory_xact_lock_shared(hashtextextended('cdb global tag ' || tag_id, 0))
FROM unnest(%(tag_ids)s::bigint[]) AS tag_id
