-- Revisions whose history may be dropped: id of the change, global tag. The newest ones of a tag come last.
-- Parameters: names text[]: consider these tags only (null: all); before timestamptz: revisions that were superseded until then
--   (null: none); keep bigint: revisions that are not among this number of newest ones of their tag (null: none).
-- A revision that was still the newest one at `before` stays, because it is the state of that time. So do the current revision of an
-- existing tag, and the revisions since an existing tag was frozen. A deletion is superseded by itself.
SELECT change.id, change.global_tag
FROM (
    SELECT id, global_tag, tag_id, revision, status, has_history,
        row_number() OVER (PARTITION BY global_tag ORDER BY revision DESC) AS position,
        row_number() OVER (PARTITION BY tag_id ORDER BY revision DESC) AS position_of_id,
        CASE
            WHEN action = 'delete' THEN created
            ELSE lag(created) OVER (PARTITION BY global_tag ORDER BY created DESC, revision DESC)
        END AS superseded
    FROM "GlobalTagChange"
    WHERE %(names)s::text[] IS NULL OR global_tag = ANY(%(names)s::text[])
) AS change
LEFT JOIN "GlobalTag" AS tag ON tag.id = change.tag_id
LEFT JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
WHERE change.has_history
    AND (change.position > %(keep)s OR change.superseded <= %(before)s)
    AND (tag.id IS NULL OR change.position_of_id > 1 AND NOT (tag_status.name = 'frozen' AND change.status = 'frozen'))
ORDER BY change.global_tag, change.revision
