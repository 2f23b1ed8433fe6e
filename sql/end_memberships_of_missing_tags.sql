-- End the memberships of payload lists in global tags that do not exist any more, with a number that no change has.
-- Parameters: list_ids bigint[].
UPDATE "PayloadListMembership" AS member SET removed_in = nextval('cdb_change_number')
WHERE member.payload_list_id = ANY(%(list_ids)s) AND member.removed_in IS NULL
    AND NOT EXISTS (SELECT FROM "GlobalTag" AS tag WHERE tag.id = member.tag_id)
