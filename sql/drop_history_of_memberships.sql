-- Note that the revisions of global tags during memberships of payload lists cannot be asked for any more, except the newest revision of
-- an existing tag. Returns global tag and revision.
-- Parameters: list_ids bigint[]: lists; tag_ids, firsts, lasts bigint[]: further periods of tags as numbers of changes, the last one
--   exclusive (null: until now).
UPDATE "GlobalTagChange" AS change SET has_history = false
FROM (
    SELECT tag_id, added_in, removed_in FROM "PayloadListMembership" WHERE payload_list_id = ANY(%(list_ids)s)
    UNION ALL
    SELECT * FROM unnest(%(tag_ids)s::bigint[], %(firsts)s::bigint[], %(lasts)s::bigint[])
) AS member (tag_id, added_in, removed_in)
WHERE change.has_history AND change.tag_id = member.tag_id AND change.number >= member.added_in
    AND (member.removed_in IS NULL OR change.number < member.removed_in)
    AND NOT (
        EXISTS (SELECT FROM "GlobalTag" AS tag WHERE tag.id = change.tag_id)
        AND NOT EXISTS (
            SELECT FROM "GlobalTagChange" AS later
            WHERE later.global_tag = change.global_tag AND later.revision > change.revision
        )
    )
RETURNING change.global_tag, change.revision
