-- Checks and repairs of counts, intervals and the history.


-- name: interval_faults
-- Rows that violate the rules of payload lists: empty rows, and closed rows that overlap the next. Returns kind of fault, names of tag
-- and list, list id, IOV id, URL, start and end.
-- Parameters: inclusive boolean: whether ends are inclusive; tag text: check the lists of this tag only (null: all lists).
-- It reads the rows of each list once. Of lists that share the same rows, it reads those of one.
WITH list AS (
    SELECT list.id, list.name, tag.name AS tag, list.rows_list_id,
        -- Rows of a base that has not changed since are its present ones.
        CASE WHEN base.version = list.base_version THEN base.rows_version ELSE list.rows_version END AS rows_version
    FROM "PayloadList" AS list
    LEFT JOIN "PayloadList" AS base ON base.id = list.base_list_id
    LEFT JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id
    WHERE %(tag)s::text IS NULL OR tag.name = %(tag)s
),
fault AS (
    SELECT source.rows_list_id, source.rows_version, iov.*, CASE
        WHEN iov.until < iov.comb_iov OR iov.until = iov.comb_iov AND NOT %(inclusive)s THEN 'empty'
        WHEN iov.until > iov.next_start OR iov.until = iov.next_start AND %(inclusive)s THEN 'overlap'
    END AS fault
    FROM (SELECT min(id) AS list_id, rows_list_id, rows_version FROM list GROUP BY rows_list_id, rows_version) AS source
    CROSS JOIN LATERAL (
        SELECT listed.*, lag(listed.comb_iov) OVER (ORDER BY listed.comb_iov DESC NULLS LAST) AS next_start, CASE
            WHEN (listed.major_iov_end, listed.minor_iov_end) <> (9223372036854775807, 9223372036854775807)
                THEN listed.major_iov_end + listed.minor_iov_end * 0.0000000000000000001
        END AS until
        FROM "ListedPayloadIOV" AS listed
        WHERE listed.payload_list_id = source.list_id
    ) AS iov
)
SELECT fault.fault, coalesce(list.tag, ''), list.name, list.id, fault.id, fault.payload_url,
    fault.major_iov, fault.minor_iov, fault.major_iov_end, fault.minor_iov_end
FROM fault
JOIN list ON list.rows_list_id = fault.rows_list_id AND list.rows_version = fault.rows_version
WHERE fault.fault IS NOT NULL
ORDER BY list.tag, list.name, fault.comb_iov, fault.id


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
-- The rows of a base in a version are counted once for all lists that share them.
WITH actual_source AS (
    SELECT payload_list_id AS rows_list_id, 2147483646 AS rows_version, count(*) AS iovs
    FROM "PayloadIOV"
    WHERE payload_list_id IS NOT NULL
    GROUP BY payload_list_id
    UNION ALL
    SELECT shared.base_list_id, shared.base_version, iov.iovs
    FROM (SELECT DISTINCT base_list_id, base_version FROM "PayloadList" WHERE base_list_id IS NOT NULL) AS shared
    CROSS JOIN LATERAL (
        SELECT count(*) AS iovs FROM cdb_iovs_of(shared.base_list_id, shared.base_version, 0, 'Infinity')
    ) AS iov
),
actual_list AS (
    SELECT list.name, list.global_tag_id, list.iov_count AS stored, coalesce(source.iovs, 0) AS iovs
    FROM "PayloadList" AS list
    LEFT JOIN actual_source AS source USING (rows_list_id, rows_version)
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
-- Set the IOV counts of payload lists.
-- Parameters, with one element for each list: names text[]; counts bigint[].
UPDATE "PayloadList" AS list SET iov_count = actual.iovs
FROM unnest(%(names)s::text[], %(counts)s::bigint[]) AS actual (name, iovs)
WHERE list.name = actual.name


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
--   integers. The newest version of an existing list is checked, too, and so are versions that other lists share or have shared.
--   Rows of other versions may have been pruned.
-- It reads all rows of the lists once, and adds up what each version adds and removes. In a version without fault, the areas are
-- adjacent from the first start f to the end of time T, so their lengths add up to s = T - f, and until^2 - start^2 adds up to
-- T^2 - f^2 = s (2 T - s). An overlap makes the second sum greater, a gap changes it, too.
WITH list AS (
    SELECT wanted.id, wanted.versions::int4multirange AS versions, existing.id IS NOT NULL AS is_existing,
        existing.base_list_id IS NOT NULL AS is_sharing
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
recorded AS (
    SELECT list_version.payload_list_id, list_version.version, list_version.iov_count,
        -- A list may have got rows of its own without a new version.
        list_version.base_list_id IS NULL AND list.versions @> list_version.version OR NOT list.is_sharing AND list.is_existing
            AND list_version.number = max(list_version.number) OVER (PARTITION BY list_version.payload_list_id) AS is_checked
    FROM "PayloadListVersion" AS list_version
    JOIN list ON list.id = list_version.payload_list_id
    UNION
    SELECT base_list_id, base_version, iov_count, true
    FROM "PayloadListVersion"
    WHERE base_list_id = ANY(%(list_ids)s)
),
step AS (
    SELECT area.payload_list_id, edge.version, NULL::boolean AS is_checked, NULL::bigint AS iov_count,
        sum(edge.sign * area.is_row::integer) AS rows, sum(edge.sign * (area.until - area.comb_iov)) AS length,
        sum(edge.sign * (area.until * area.until - area.comb_iov * area.comb_iov)) AS squares
    FROM area
    CROSS JOIN LATERAL (VALUES (area.added_in, 1), (area.removed_in, -1)) AS edge (version, sign)
    WHERE edge.version IS NOT NULL
    GROUP BY area.payload_list_id, edge.version
    UNION ALL
    SELECT payload_list_id, version, is_checked, iov_count, 0, 0, 0 FROM recorded
),
state AS (
    SELECT payload_list_id, version, is_checked, iov_count, sum(rows) OVER earlier AS rows, sum(length) OVER earlier AS length,
        sum(squares) OVER earlier AS squares
    FROM step
    WINDOW earlier AS (PARTITION BY payload_list_id ORDER BY version)
),
checked AS (
    SELECT *, iov_count <> rows AS differs, squares <> length * (20000000000000000000 - length) AS is_not_covered
    FROM state
    WHERE is_checked
)
SELECT 'number of IOVs', NULL::bigint, payload_list_id, format(
    '%%s versions, such as version %%s: %%s recorded, %%s stored', count(DISTINCT version), max(version),
    (array_agg(iov_count ORDER BY version DESC))[1], (array_agg(rows ORDER BY version DESC))[1]
)
FROM checked
WHERE differs
GROUP BY payload_list_id
UNION ALL
SELECT 'areas', NULL, payload_list_id,
    format('%%s versions in which areas overlap or leave a gap, such as version %%s', count(DISTINCT version), max(version))
FROM checked
WHERE is_not_covered
GROUP BY payload_list_id
ORDER BY 3, 1


-- name: history_number_faults
-- Payload lists whose rows belong to versions that the list does not have yet, whose recorded versions are not in order, or that share
-- other rows than recorded, or not only: kind, tag, list, description.
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
SELECT 'base', NULL, list.id, CASE
    WHEN iov.is_own THEN 'the list shares rows of another one, but has rows of its own, too'
    ELSE 'the list shares other rows than those of its last recorded version'
END
FROM "PayloadList" AS list
CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM "PayloadIOV" WHERE payload_list_id = list.id) AS is_own) AS iov
WHERE list.id = ANY(%(list_ids)s) AND list.base_list_id IS NOT NULL AND (iov.is_own OR NOT EXISTS (
    SELECT FROM "PayloadListVersion" AS list_version
    WHERE list_version.payload_list_id = list.id AND list_version.version = list.version
        AND list_version.base_list_id = list.base_list_id AND list_version.base_version = list.base_version
))
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


-- name: drop_history_of_lists
-- Note that the revisions of global tags which need rows of payload lists, also by other lists that share them, cannot be asked for any
-- more, except the newest revision of an existing tag. Returns global tag and revision.
-- Parameters: list_ids bigint[].
UPDATE "GlobalTagChange" AS change SET has_history = false
WHERE change.has_history AND change.id IN (
    SELECT resolved.id
    FROM "PayloadListMembership" AS member
    JOIN "GlobalTagChange" AS resolved ON resolved.tag_id = member.tag_id AND resolved.number >= member.added_in
        AND (member.removed_in IS NULL OR resolved.number < member.removed_in)
    CROSS JOIN LATERAL cdb_rows_after(member.payload_list_id, resolved.number) AS source
    WHERE source.rows_list_id = ANY(%(list_ids)s) AND (
        member.payload_list_id = ANY(%(list_ids)s)
        OR member.payload_list_id IN (SELECT payload_list_id FROM "PayloadListVersion" WHERE base_list_id = ANY(%(list_ids)s))
    )
)
AND NOT (
    EXISTS (SELECT FROM "GlobalTag" AS tag WHERE tag.id = change.tag_id)
    AND NOT EXISTS (
        SELECT FROM "GlobalTagChange" AS later
        WHERE later.global_tag = change.global_tag AND later.revision > change.revision
    )
)
RETURNING change.global_tag, change.revision
