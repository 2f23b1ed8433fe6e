-- Record a change: a number, a new version of each changed payload list, and for each changed global tag a new revision with an
-- entry in the change log. Returns the names and the revisions of the tags.
-- Parameters: list_ids bigint[]: payload lists whose rows changed; tag_ids bigint[]: the tags; has_other_lists boolean[]: whether
--   lists were attached to the tag, detached or deleted; sources text[] (JSON or null); iovs_before, iovs_after bigint[]:
--   numbers of IOVs that were removed and added; one element for each tag; actor, action, comment text.
-- A tag whose name was used before continues the revisions in the log of that name, and after a restoration of the database
-- revisions continue where no lost change can have been. The number is assigned after the tags are locked by the first
-- UPDATE, so the numbers of a tag have the order of its revisions.
-- A tag that was never recorded has lists of which the history does not know yet. The deletion of a tag ends all of its lists.
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
    RETURNING tag.id, tag.name, tag.revision, tag.updated, tag.status_id
),
numbered AS MATERIALIZED (
    SELECT nextval('cdb_change_number') AS number FROM (SELECT count(*) FROM raised) AS locked
),
new_version AS (
    UPDATE "PayloadList" AS list SET version = list.version + 1
    WHERE list.id = ANY(%(list_ids)s)
    RETURNING list.id, list.version, list.iov_count
),
list_version AS (
    INSERT INTO "PayloadListVersion" (payload_list_id, number, version, iov_count)
    SELECT new_version.id, numbered.number, new_version.version, new_version.iov_count FROM new_version, numbered
),
change AS MATERIALIZED (
    SELECT raised.*, numbered.number, changed.source, changed.iovs_before, changed.iovs_after,
        changed.has_other_lists OR raised.id IS DISTINCT FROM (
            SELECT earlier.tag_id FROM "GlobalTagChange" AS earlier
            WHERE earlier.global_tag = raised.name ORDER BY earlier.revision DESC LIMIT 1
        ) AS has_other_lists
    FROM raised
    JOIN unnest(
        %(tag_ids)s::bigint[], %(has_other_lists)s::boolean[], %(sources)s::text[], %(iovs_before)s::bigint[],
        %(iovs_after)s::bigint[]
    ) AS changed (tag_id, has_other_lists, source, iovs_before, iovs_after) ON changed.tag_id = raised.id
    CROSS JOIN numbered
),
list_left AS (
    UPDATE "PayloadListMembership" AS member SET removed_in = change.number
    FROM change
    WHERE change.has_other_lists AND member.tag_id = change.id AND member.removed_in IS NULL AND (
        %(action)s = 'delete' OR NOT EXISTS (
            SELECT FROM "PayloadList" AS list
            WHERE list.id = member.payload_list_id AND list.global_tag_id = member.tag_id
        )
    )
),
list_came AS (
    INSERT INTO "PayloadListMembership" (tag_id, payload_list_id, name, payload_type, created, added_in)
    SELECT change.id, list.id, list.name, payload_type.name, list.created, change.number
    FROM change
    JOIN "PayloadList" AS list ON list.global_tag_id = change.id
    JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
    WHERE change.has_other_lists AND %(action)s <> 'delete' AND NOT EXISTS (
        SELECT FROM "PayloadListMembership" AS member
        WHERE member.tag_id = change.id AND member.payload_list_id = list.id AND member.removed_in IS NULL
    )
)
INSERT INTO "GlobalTagChange" (
    number, global_tag, tag_id, revision, status, created, actor, action, comment, payload_iovs_before, payload_iovs_after, source
)
SELECT change.number, change.name, change.id, change.revision, tag_status.name, change.updated, %(actor)s, %(action)s, %(comment)s,
    change.iovs_before, change.iovs_after, change.source::jsonb
FROM change
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = change.status_id
RETURNING global_tag, revision
