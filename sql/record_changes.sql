-- Raise the revisions of global tags by one, and insert a row into the change log for each. Returns names and revisions.
-- Parameters: tag_ids bigint[]; befores, afters text[] (JSON); iovs_before, iovs_after bigint[]: numbers of IOVs; lists_before,
--   lists_after bigint[]: payload lists that were removed or added with all of their IOVs, or null; one element for each
--   tag; actor, action, comment text. Placeholder for the payload columns by their API names: {iov.payload_json}.
-- A tag whose name was used before continues the revisions in the log of that name, and after a restoration of the database
-- revisions continue where no lost change can have been. The documents of whole lists are created
-- here, so that no client needs the memory for them.
WITH raised AS (
    UPDATE "GlobalTag" AS tag
    -- Whole seconds, later than all earlier ones of this name, and sent to clients only once passed: unique for each state.
    SET last_modified = greatest(tag.last_modified, date_trunc('second', clock_timestamp())) + interval '1 second',
        updated = clock_timestamp(), revision = 1 + greatest(
        tag.revision,
        (SELECT max(change.revision) FROM "GlobalTagChange" AS change WHERE change.global_tag = tag.name),
        (SELECT max(restoration.first_revision) - 1 FROM "Restoration" AS restoration)
    )
    WHERE tag.id = ANY(%(tag_ids)s)
    RETURNING tag.id, tag.name, tag.revision, tag.updated
),
whole_list AS (
    SELECT list.id, jsonb_build_object('payload_iovs', jsonb_agg(jsonb_build_object(
        'id', iov.id, 'payload_list', list.name, {iov.payload_json}, 'major_iov', iov.major_iov, 'minor_iov', iov.minor_iov,
        'major_iov_end', iov.major_iov_end, 'minor_iov_end', iov.minor_iov_end
    ) ORDER BY iov.comb_iov)) AS document
    FROM "PayloadList" AS list
    JOIN "PayloadIOV" AS iov ON iov.payload_list_id = list.id
    WHERE list.id = ANY(%(lists_before)s::bigint[] || %(lists_after)s::bigint[])
    GROUP BY list.id
)
INSERT INTO "GlobalTagChange" (
    global_tag, revision, created, actor, action, comment, payload_iovs_before, payload_iovs_after, before, after
)
SELECT raised.name, raised.revision, raised.updated, %(actor)s, %(action)s, %(comment)s,
    change.iovs_before, change.iovs_after,
    change.before::jsonb || coalesce(went.document, '{}'), change.after::jsonb || coalesce(came.document, '{}')
FROM raised
JOIN unnest(
    %(tag_ids)s::bigint[], %(befores)s::text[], %(afters)s::text[], %(iovs_before)s::bigint[], %(iovs_after)s::bigint[],
    %(lists_before)s::bigint[], %(lists_after)s::bigint[]
) AS change (tag_id, before, after, iovs_before, iovs_after, list_before, list_after) ON change.tag_id = raised.id
LEFT JOIN whole_list AS went ON went.id = change.list_before
LEFT JOIN whole_list AS came ON came.id = change.list_after
RETURNING global_tag, revision
