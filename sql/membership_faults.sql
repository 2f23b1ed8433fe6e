-- Memberships of payload lists that differ from the present lists of the global tags, or that overlap: kind, tag, list, description.
-- Parameters: list_ids bigint[].
-- A tag that was never recorded has no memberships yet.
SELECT 'membership', list.global_tag_id, list.id, 'the list is in the tag, but its history does not say so'
FROM "PayloadList" AS list
WHERE list.id = ANY(%(list_ids)s)
    AND EXISTS (SELECT FROM "GlobalTagChange" AS change WHERE change.tag_id = list.global_tag_id)
    AND NOT EXISTS (
        SELECT FROM "PayloadListMembership" AS member
        WHERE member.payload_list_id = list.id AND member.tag_id = list.global_tag_id AND member.removed_in IS NULL
    )
UNION ALL
SELECT 'membership', member.tag_id, member.payload_list_id, 'the list is not in the tag, but its history says so'
FROM "PayloadListMembership" AS member
WHERE member.payload_list_id = ANY(%(list_ids)s) AND member.removed_in IS NULL AND NOT EXISTS (
    SELECT FROM "PayloadList" AS list WHERE list.id = member.payload_list_id AND list.global_tag_id = member.tag_id
)
UNION ALL
SELECT 'two tags', member.tag_id, member.payload_list_id,
    format('from change %%s on, the list is in another tag or twice in this one', member.added_in)
FROM (
    SELECT tag_id, payload_list_id, added_in, max(coalesce(removed_in, 9223372036854775807)) OVER (
        PARTITION BY payload_list_id ORDER BY added_in, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS earlier_removed_in
    FROM "PayloadListMembership"
    WHERE payload_list_id = ANY(%(list_ids)s)
) AS member
WHERE member.earlier_removed_in > member.added_in
ORDER BY 3, 2, 1
