-- Global tags whose newest entry in the change log differs from them: kind, tag, list (null), description.
-- Parameters: tag text: check this tag only (null: all tags).
-- A tag that was never recorded has no entry.
SELECT CASE WHEN (change.revision, change.tag_id) = (tag.revision, tag.id) THEN 'status' ELSE 'newest change' END,
    tag.id, NULL::bigint, format(
        'revision %%s, tag id %%s, status %%s; in the change log revision %%s, tag id %%s, status %%s', tag.revision, tag.id,
        tag_status.name, change.revision, coalesce(change.tag_id::text, 'none'), change.status
    )
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
CROSS JOIN LATERAL (
    SELECT newest.revision, newest.tag_id, newest.status FROM "GlobalTagChange" AS newest
    WHERE newest.global_tag = tag.name ORDER BY newest.revision DESC LIMIT 1
) AS change
WHERE (%(tag)s::text IS NULL OR tag.name = %(tag)s)
    AND (change.revision, change.tag_id, change.status) IS DISTINCT FROM (tag.revision, tag.id, tag_status.name)
ORDER BY tag.name
