-- Raise the revision of global tags by one and write a row of the change log for each; returns names and revisions.
-- Parameters: tag_ids bigint[], befores, afters text[] (JSON), iovs_before, iovs_after bigint[], one element for each tag;
--   actor, action, comment text.
-- A tag whose name was used before carries on where the log of that name ends.
WITH raised AS (
    UPDATE "GlobalTag" AS tag
    SET updated = clock_timestamp(), revision = 1 + greatest(
        tag.revision,
        (SELECT max(change.revision) FROM "GlobalTagChange" AS change WHERE change.global_tag = tag.name)
    )
    WHERE tag.id = ANY(%(tag_ids)s)
    RETURNING tag.id, tag.name, tag.revision, tag.updated
)
INSERT INTO "GlobalTagChange" (
    global_tag, revision, created, actor, action, comment, payload_iovs_before, payload_iovs_after, before, after
)
SELECT raised.name, raised.revision, raised.updated, %(actor)s, %(action)s, %(comment)s,
    change.iovs_before, change.iovs_after, change.before::jsonb, change.after::jsonb
FROM raised
JOIN unnest(
    %(tag_ids)s::bigint[], %(befores)s::text[], %(afters)s::text[], %(iovs_before)s::bigint[], %(iovs_after)s::bigint[]
) AS change (tag_id, before, after, iovs_before, iovs_after) ON change.tag_id = raised.id
RETURNING global_tag, revision
