-- Memberships of payload lists that overlap another one of the same list, except those in frozen tags: id, tag, since and until which
-- change (null: now), and whether it is a present one in an existing tag.
-- Parameters: list_ids bigint[].
SELECT member.id, member.tag_id, member.added_in, member.removed_in, tag.id IS NOT NULL AND member.removed_in IS NULL
FROM "PayloadListMembership" AS member
LEFT JOIN "GlobalTag" AS tag ON tag.id = member.tag_id
LEFT JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
WHERE member.payload_list_id = ANY(%(list_ids)s) AND tag_status.name IS DISTINCT FROM 'frozen' AND EXISTS (
    SELECT FROM "PayloadListMembership" AS other
    WHERE other.payload_list_id = member.payload_list_id AND other.id <> member.id
        AND (member.removed_in IS NULL OR other.added_in < member.removed_in)
        AND (other.removed_in IS NULL OR other.removed_in > member.added_in)
)
