-- The history begins with the present: version 0 of each list, the lists of each tag, and the last change of each tag.
INSERT INTO "PayloadListVersion" (payload_list_id, number, version, iov_count)
SELECT id, 0, 0, iov_count FROM "PayloadList";
INSERT INTO "PayloadListMembership" (tag_id, payload_list_id, name, payload_type, created, added_in)
SELECT list.global_tag_id, list.id, list.name, payload_type.name, list.created, 0
FROM "PayloadList" AS list
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
WHERE list.global_tag_id IS NOT NULL
ORDER BY list.global_tag_id, list.id;
UPDATE "GlobalTagChange" AS change SET has_history = true, tag_id = tag.id, status = tag_status.name
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
WHERE change.global_tag = tag.name AND change.revision = tag.revision;
