-- The logged changes of a global tag without their payload IOVs, newest first. Parameters: tag text; revision bigint: the newest one.
SELECT change.id, change.number, change.revision, change.action, (change.logged_before - 'payload_iovs')::text AS before,
    (change.logged_after - 'payload_iovs')::text AS after
FROM "GlobalTagChange" AS change
WHERE change.global_tag = %(tag)s AND change.revision <= %(revision)s
    AND change.logged_before IS NOT NULL AND change.logged_after IS NOT NULL
ORDER BY change.revision DESC
