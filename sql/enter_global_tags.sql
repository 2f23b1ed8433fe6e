-- Take a share in global tags until the transaction ends: many writers may have one at a time.
-- Parameters: tag_ids bigint[], in their order.
-- Row locks alone would let new sharers overtake whoever waits for a tag alone, as long as they come; this lock has a queue.
SELECT pg_advisory_xact_lock_shared(hashtextextended('cdb global tag ' || tag_id, 0))
FROM unnest(%(tag_ids)s::bigint[]) AS tag_id
