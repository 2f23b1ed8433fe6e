-- Checks and repairs of counts, intervals and the history.


-- name: interval_faults
-- Rows that violate the rules of payload lists: empty rows, rows with the same start as another, and closed rows that overlap the
-- next. Returns kind of fault, names of tag and list, list id, IOV id, URL, start and end.
-- Parameters: inclusive boolean: whether ends are inclusive; tag text: check the lists of this tag only (null: all lists).
-- It reads and sorts all rows once.
WITH attached AS (
    SELECT iov.id, iov.payload_list_id, iov.comb_iov, iov.payload_url, iov.major_iov, iov.minor_iov, iov.major_iov_end,
        iov.minor_iov_end,
        (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807) AS is_open,
        iov.major_iov_end + iov.minor_iov_end * 0.0000000000000000001 AS until,
        lag(iov.comb_iov) OVER list AS next_start
    FROM "PayloadIOV" AS iov
    WHERE iov.payload_list_id IN (
        SELECT list.id FROM "PayloadList" AS list LEFT JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id
        WHERE %(tag)s IS NULL OR tag.name = %(tag)s
    )
    WINDOW list AS (PARTITION BY iov.payload_list_id ORDER BY iov.comb_iov DESC NULLS LAST)
),
fault AS (
    SELECT *, CASE
        WHEN NOT is_open AND (until < comb_iov OR until = comb_iov AND NOT %(inclusive)s) THEN 'empty'
        WHEN comb_iov = next_start THEN 'equal start'
        WHEN NOT is_open AND (until > next_start OR until = next_start AND %(inclusive)s) THEN 'overlap'
    END AS fault
    FROM attached
)
SELECT fault.fault, coalesce(tag.name, ''), list.name, list.id, fault.id, fault.payload_url,
    fault.major_iov, fault.minor_iov, fault.major_iov_end, fault.minor_iov_end
FROM fault
JOIN "PayloadList" AS list ON list.id = fault.payload_list_id
LEFT JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id
WHERE fault.fault IS NOT NULL
ORDER BY tag.name, list.name, fault.comb_iov, fault.id


-- name: lagging_revisions
-- Global tags whose revision is lower than the last one in their change log: name, revision, last revision in the log.
-- Parameters: tag text: check this tag only (null: all tags).
SELECT tag.name, tag.revision, max(change.revision)
FROM "GlobalTag" AS tag
JOIN "GlobalTagChange" AS change ON change.global_tag = tag.name
WHERE %(tag)s IS NULL OR tag.name = %(tag)s
GROUP BY tag.id
HAVING tag.revision < max(change.revision)
ORDER BY tag.name


-- name: incorrect_counts
-- The stored counts that differ from the rows: kind of object, name, which count, stored value, actual value. No parameters.
-- The counts of a tag are compared with its rows, not with the counts of its lists.
WITH iovs_of_list AS (
    SELECT payload_list_id, count(*) AS iovs FROM "PayloadIOV" WHERE payload_list_id IS NOT NULL GROUP BY payload_list_id
),
actual_list AS (
    SELECT list.name, list.global_tag_id, list.iov_count AS stored, coalesce(iovs_of_list.iovs, 0) AS iovs
    FROM "PayloadList" AS list
    LEFT JOIN iovs_of_list ON iovs_of_list.payload_list_id = list.id
),
actual_tag AS (
    SELECT tag.name, tag.payload_lists_count, tag.payload_iov_count, count(actual_list.name) AS lists,
        coalesce(sum(actual_list.iovs), 0) AS iovs
    FROM "GlobalTag" AS tag
    LEFT JOIN actual_list ON actual_list.global_tag_id = tag.id
    GROUP BY tag.id
)
SELECT 'payload list', name, 'IOVs', stored, iovs FROM actual_list WHERE stored <> iovs
UNION ALL
SELECT 'global tag', name, 'payload lists', payload_lists_count, lists FROM actual_tag WHERE payload_lists_count <> lists
UNION ALL
SELECT 'global tag', name, 'IOVs', payload_iov_count, iovs FROM actual_tag WHERE payload_iov_count <> iovs
ORDER BY 1, 2, 3


-- name: lock_for_repair
-- Lock the tables against all writers, including those that only lock rows. Readers are not blocked. No parameters.
LOCK TABLE "GlobalTag", "PayloadList", "PayloadIOV" IN EXCLUSIVE MODE


-- name: repair_list_counts
-- Set the IOV count of each payload list to the number of its rows. No parameters.
UPDATE "PayloadList" AS list SET iov_count = actual.iovs
FROM (
    SELECT list.id, count(iov.id) AS iovs
    FROM "PayloadList" AS list
    LEFT JOIN "PayloadIOV" AS iov ON iov.payload_list_id = list.id
    GROUP BY list.id
) AS actual
WHERE actual.id = list.id AND list.iov_count <> actual.iovs


-- name: apply_deferred_counts
-- Run the deferred triggers that update the counts of global tags now, and immediately for the rest of the transaction,
-- instead of at its commit. No parameters.
SET CONSTRAINTS ALL IMMEDIATE


-- name: repair_tag_counts
-- Set the counts of each global tag from its payload lists, whose own counts must be correct. No parameters.
UPDATE "GlobalTag" AS tag SET payload_lists_count = actual.lists, payload_iov_count = actual.iovs
FROM (
    SELECT tag.id, count(list.id) AS lists, coalesce(sum(list.iov_count), 0) AS iovs
    FROM "GlobalTag" AS tag
    LEFT JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
    GROUP BY tag.id
) AS actual
WHERE actual.id = tag.id AND (tag.payload_lists_count, tag.payload_iov_count) <> (actual.lists, actual.iovs)


-- name: touch_global_tags
-- Raise the time of the last modification of all global tags, so that HTTP caches which compare times revalidate. The new time
-- is computed as in `record_changes`. No parameters.
UPDATE "GlobalTag"
SET last_modified = greatest(last_modified, date_trunc('second', clock_timestamp())) + interval '1 second'


-- name: history_row_faults
-- Payload lists with two versions of a payload IOV, that is of one start, whose lives overlap: kind, tag, list, description.
-- Parameters: list_ids bigint[].
-- It reads and sorts all rows of the lists, present and past. A present row lives on without end.
SELECT 'two versions', NULL::bigint, row.payload_list_id,
    format('%%s overlaps of lives, such as at start %%s in version %%s', count(*), min(row.comb_iov), min(row.added_in))
FROM (
    SELECT payload_list_id, comb_iov, added_in, max(removed_in) OVER (
        PARTITION BY payload_list_id, comb_iov ORDER BY added_in, removed_in
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS earlier_removed_in
    FROM (
        SELECT payload_list_id, comb_iov, added_in, removed_in
        FROM "PayloadIOVHistory"
        WHERE row_start IS NULL AND payload_list_id = ANY(%(list_ids)s)
        UNION ALL
        SELECT payload_list_id, comb_iov, added_in, 2147483647 FROM "PayloadIOV" WHERE payload_list_id = ANY(%(list_ids)s)
    ) AS version_of_row
) AS row
WHERE row.earlier_removed_in > row.added_in
GROUP BY row.payload_list_id
ORDER BY row.payload_list_id


-- name: history_version_faults
-- Payload lists with versions whose rows differ from what was recorded, or whose areas do not cover the moments exactly once: kind,
-- tag, list, description.
-- Parameters: list_ids bigint[]; versions text[]: for each list, the versions that revisions with history need, as a multirange of
--   integers. The newest version of an existing list is checked, too. Rows of other versions may have been pruned.
-- It reads all rows of the lists once, and adds up what each version adds and removes. In a version without fault, the areas are
-- adjacent from the first start f to the end of time T, so their lengths add up to s = T - f, and until^2 - start^2 adds up to
-- T^2 - f^2 = s (2 T - s). An overlap makes the second sum greater, a gap changes it, too.
WITH list AS (
    SELECT wanted.id, wanted.versions::int4multirange AS versions, existing.id IS NOT NULL AS is_existing
    FROM unnest(%(list_ids)s::bigint[], %(versions)s::text[]) AS wanted (id, versions)
    LEFT JOIN "PayloadList" AS existing ON existing.id = wanted.id
),
area AS (
    SELECT payload_list_id, comb_iov, added_in, NULL::integer AS removed_in, true AS is_row, coalesce(
        lag(comb_iov) OVER (PARTITION BY payload_list_id ORDER BY comb_iov DESC NULLS LAST), 10000000000000000000
    ) AS until
    FROM "PayloadIOV"
    WHERE payload_list_id = ANY(%(list_ids)s)
    UNION ALL
    SELECT payload_list_id, comb_iov, added_in, removed_in, row_start IS NULL, coalesce(until, 10000000000000000000)
    FROM "PayloadIOVHistory"
    WHERE payload_list_id = ANY(%(list_ids)s)
),
step AS (
    SELECT area.payload_list_id, edge.version, NULL::bigint AS number, NULL::bigint AS iov_count,
        sum(edge.sign * area.is_row::integer) AS rows, sum(edge.sign * (area.until - area.comb_iov)) AS length,
        sum(edge.sign * (area.until * area.until - area.comb_iov * area.comb_iov)) AS squares
    FROM area
    CROSS JOIN LATERAL (VALUES (area.added_in, 1), (area.removed_in, -1)) AS edge (version, sign)
    WHERE edge.version IS NOT NULL
    GROUP BY area.payload_list_id, edge.version
    UNION ALL
    SELECT payload_list_id, version, number, iov_count, 0, 0, 0
    FROM "PayloadListVersion"
    WHERE payload_list_id = ANY(%(list_ids)s)
),
state AS (
    SELECT payload_list_id, version, number, iov_count, sum(rows) OVER earlier AS rows, sum(length) OVER earlier AS length,
        sum(squares) OVER earlier AS squares, max(number) OVER (PARTITION BY payload_list_id) AS last_number
    FROM step
    WINDOW earlier AS (PARTITION BY payload_list_id ORDER BY version)
),
checked AS (
    SELECT state.*, state.iov_count <> state.rows AS differs,
        state.squares <> state.length * (20000000000000000000 - state.length) AS is_not_covered
    FROM state
    JOIN list ON list.id = state.payload_list_id
    WHERE state.number IS NOT NULL
        AND (list.versions @> state.version OR list.is_existing AND state.number = state.last_number)
)
SELECT 'number of IOVs', NULL::bigint, payload_list_id, format(
    '%%s versions, such as version %%s: %%s recorded, %%s stored', count(*), max(version),
    (array_agg(iov_count ORDER BY version DESC))[1], (array_agg(rows ORDER BY version DESC))[1]
)
FROM checked
WHERE differs
GROUP BY payload_list_id
UNION ALL
SELECT 'areas', NULL, payload_list_id,
    format('%%s versions in which areas overlap or leave a gap, such as version %%s', count(*), max(version))
FROM checked
WHERE is_not_covered
GROUP BY payload_list_id
ORDER BY 3, 1


-- name: history_number_faults
-- Payload lists whose rows belong to versions that the list does not have yet, or whose recorded versions are not in order: kind, tag,
-- list, description.
-- Parameters: list_ids bigint[].
-- Versions that no revision needs are pruned, so not every version of a row is recorded.
SELECT 'version', NULL::bigint, row.payload_list_id,
    format('%%s rows of later versions than that of the list, %%s, such as version %%s', count(*), list.version, max(row.version))
FROM (
    SELECT payload_list_id, added_in AS version FROM "PayloadIOV" WHERE payload_list_id = ANY(%(list_ids)s)
    UNION ALL
    SELECT payload_list_id, removed_in FROM "PayloadIOVHistory" WHERE payload_list_id = ANY(%(list_ids)s)
) AS row
JOIN "PayloadList" AS list ON list.id = row.payload_list_id
WHERE row.version > list.version
GROUP BY row.payload_list_id, list.version
UNION ALL
SELECT 'version', NULL, list.id,
    format('version %%s, but the last recorded one is %%s', list.version, coalesce(newest.version::text, 'none'))
FROM "PayloadList" AS list
LEFT JOIN LATERAL (
    SELECT list_version.version FROM "PayloadListVersion" AS list_version
    WHERE list_version.payload_list_id = list.id ORDER BY list_version.number DESC LIMIT 1
) AS newest ON true
WHERE list.id = ANY(%(list_ids)s) AND list.version <> coalesce(newest.version, 0)
UNION ALL
SELECT 'version', NULL, payload_list_id, format('version %%s is recorded after version %%s', min(version), max(earlier))
FROM (
    SELECT payload_list_id, version, lag(version) OVER (PARTITION BY payload_list_id ORDER BY number) AS earlier
    FROM "PayloadListVersion"
    WHERE payload_list_id = ANY(%(list_ids)s)
) AS list_version
WHERE version <= earlier
GROUP BY payload_list_id
ORDER BY 3, 4


-- name: membership_faults
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


-- name: newest_change_faults
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


-- name: lock_history_for_repair
-- Lock the tables of the present and of the history against all writers, also against the deletion of old history. Readers are not
-- blocked. No parameters.
LOCK TABLE "GlobalTag", "PayloadList", "PayloadIOV", "GlobalTagChange", "PayloadListMembership", "PayloadListVersion",
    "PayloadIOVHistory" IN EXCLUSIVE MODE


-- name: unrecorded_iovs
-- Payload IOVs of existing payload lists that the service did not add: their version is later than that of the list, or they were
-- created after their version was recorded. Returns list and IOV.
-- Parameters: list_ids bigint[].
-- A version without an entry in the change log, which the list has from a time in which it was in no tag, was recorded before the
-- next one that has an entry. So was a version that was pruned.
WITH list_version AS (
    SELECT list_version.payload_list_id, list_version.version,
        coalesce(lag(list_version.version) OVER (PARTITION BY list_version.payload_list_id ORDER BY list_version.number), -1)
            AS earlier,
        min(change.created) OVER (PARTITION BY list_version.payload_list_id ORDER BY list_version.number DESC) AS recorded
    FROM "PayloadListVersion" AS list_version
    LEFT JOIN (
        SELECT number, max(created) AS created FROM "GlobalTagChange" GROUP BY number
    ) AS change ON change.number = list_version.number
    WHERE list_version.payload_list_id = ANY(%(list_ids)s)
)
SELECT iov.payload_list_id, iov.id
FROM "PayloadIOV" AS iov
JOIN "PayloadList" AS list ON list.id = iov.payload_list_id
LEFT JOIN list_version ON list_version.payload_list_id = iov.payload_list_id AND list_version.earlier < iov.added_in
    AND list_version.version >= iov.added_in
WHERE iov.payload_list_id = ANY(%(list_ids)s) AND (iov.added_in > list.version OR iov.created > list_version.recorded)
ORDER BY iov.payload_list_id, iov.comb_iov


-- name: overlapping_memberships
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


-- name: end_memberships_of_missing_tags
-- End the memberships of payload lists in global tags that do not exist any more, with a number that no change has.
-- Parameters: list_ids bigint[].
UPDATE "PayloadListMembership" AS member SET removed_in = nextval('cdb_change_number')
WHERE member.payload_list_id = ANY(%(list_ids)s) AND member.removed_in IS NULL
    AND NOT EXISTS (SELECT FROM "GlobalTag" AS tag WHERE tag.id = member.tag_id)


-- name: drop_history_of_memberships
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
