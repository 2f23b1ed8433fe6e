-- Pruning of the history.


-- name: prunable_revisions
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


-- name: lists_with_history
-- The ids of all payload lists that have stored versions or areas of the past, in order, and whether they have areas. No parameters.
-- It reads one index entry for each list and table, not all rows.
WITH RECURSIVE list (id) AS (
    SELECT least(
        (SELECT min(payload_list_id) FROM "PayloadListVersion"), (SELECT min(payload_list_id) FROM "PayloadIOVHistory")
    )
    UNION ALL
    SELECT least(
        (SELECT min(payload_list_id) FROM "PayloadListVersion" WHERE payload_list_id > list.id),
        (SELECT min(payload_list_id) FROM "PayloadIOVHistory" WHERE payload_list_id > list.id)
    )
    FROM list
    WHERE list.id IS NOT NULL
)
SELECT id, EXISTS (SELECT FROM "PayloadIOVHistory" WHERE payload_list_id = list.id) FROM list WHERE id IS NOT NULL


-- name: needed_versions
-- The versions of payload lists that revisions with history need, or whose rows other lists share or have shared: list, the versions
-- as a multirange of integers, the numbers of the rows of PayloadListVersion that revisions need as a multirange, and what other
-- sessions cannot need later: versions below last_version, and numbers below last_number.
-- Parameters: list_ids bigint[].
-- It is a single statement, so it sees one snapshot. A revision that is recorded later has at least the version that a list
-- has in this snapshot, because the changes of a tag and of its lists are committed in the order of their numbers. So has a list
-- that begins to share later, unless its write began before; but then it has locked the revision that it shares against the loss of
-- its history, so that this revision has it in this snapshot (cdb_rest.writes.global_tags).
WITH resolved AS (
    SELECT DISTINCT member.payload_list_id, list_version.number, coalesce(list_version.version, 0) AS version
    FROM "PayloadListMembership" AS member
    JOIN "GlobalTagChange" AS change ON change.tag_id = member.tag_id AND change.number >= member.added_in
        AND (member.removed_in IS NULL OR change.number < member.removed_in)
    LEFT JOIN LATERAL (
        SELECT earlier.number, earlier.version
        FROM "PayloadListVersion" AS earlier
        WHERE earlier.payload_list_id = member.payload_list_id AND earlier.number <= change.number
        ORDER BY earlier.number DESC
        LIMIT 1
    ) AS list_version ON true
    WHERE member.payload_list_id = ANY(%(list_ids)s) AND change.has_history AND change.action <> 'delete'
    UNION
    SELECT base_list_id, NULL, base_version FROM "PayloadListVersion" WHERE base_list_id = ANY(%(list_ids)s)
    UNION
    SELECT base_list_id, NULL, base_version FROM "PayloadList" WHERE base_list_id = ANY(%(list_ids)s)
),
needed AS (
    SELECT payload_list_id, range_agg(int4range(version, version + 1)) AS versions,
        range_agg(int8range(number, number + 1)) FILTER (WHERE number IS NOT NULL) AS numbers
    FROM resolved
    GROUP BY payload_list_id
)
SELECT wanted.id, coalesce(needed.versions, '{}')::text, coalesce(needed.numbers, '{}')::text,
    CASE WHEN list.id IS NULL THEN 2147483647 ELSE list.version END AS last_version,
    CASE WHEN list.id IS NULL THEN 9223372036854775807 ELSE coalesce((
        SELECT max(number) FROM "PayloadListVersion" AS list_version WHERE list_version.payload_list_id = list.id
    ), 0) END AS last_number
FROM unnest(%(list_ids)s::bigint[]) AS wanted (id)
LEFT JOIN needed ON needed.payload_list_id = wanted.id
LEFT JOIN "PayloadList" AS list ON list.id = wanted.id
ORDER BY wanted.id


-- name: delete_unneeded_areas
-- Of the next areas of the past of a payload list, delete those that no revision with history needs. Returns the key of the last area
-- that was considered, with the numbers of considered and of deleted areas; no row at the end of the list.
-- Parameters: list_id bigint; versions int4multirange: the needed versions; last_version integer: areas that reach beyond this
--   version stay; node integer, comb_iov numeric: the key after which to begin; batch integer: how many areas to consider.
WITH considered AS MATERIALIZED (
    SELECT node, comb_iov, removed_in <= %(last_version)s
        AND NOT %(versions)s::int4multirange && int4range(added_in, removed_in) AS is_unneeded
    FROM "PayloadIOVHistory"
    WHERE payload_list_id = %(list_id)s AND (node, comb_iov) > (%(node)s, %(comb_iov)s)
    ORDER BY node, comb_iov
    LIMIT %(batch)s
),
deleted AS (
    DELETE FROM "PayloadIOVHistory" AS area
    USING considered
    WHERE considered.is_unneeded AND area.payload_list_id = %(list_id)s AND area.node = considered.node
        AND area.comb_iov = considered.comb_iov
    RETURNING 1
)
SELECT node, comb_iov, (SELECT count(*) FROM considered), (SELECT count(*) FROM deleted)
FROM considered
ORDER BY node DESC, comb_iov DESC
LIMIT 1


-- name: delete_unneeded_versions
-- Delete versions of payload lists to which no revision with history resolves, up to a number of rows. Returns how many.
-- Parameters, the arrays with one element for each list: list_ids bigint[]; numbers text[]: multiranges of the numbers of the needed
--   versions; last_numbers bigint[]: this one and later ones stay; batch integer.
WITH deleted AS (
    DELETE FROM "PayloadListVersion" AS list_version
    USING (
        SELECT unneeded.payload_list_id, unneeded.number
        FROM unnest(%(list_ids)s::bigint[], %(numbers)s::text[], %(last_numbers)s::bigint[]) AS list (id, numbers, last_number)
        JOIN "PayloadListVersion" AS unneeded ON unneeded.payload_list_id = list.id AND unneeded.number < list.last_number
            AND NOT list.numbers::int8multirange @> unneeded.number
        LIMIT %(batch)s
    ) AS unneeded
    WHERE list_version.payload_list_id = unneeded.payload_list_id AND list_version.number = unneeded.number
    RETURNING 1
)
SELECT count(*) FROM deleted


-- name: delete_unneeded_memberships
-- Delete memberships of payload lists that have ended and that no revision with history needs, up to a number of rows. Returns how
-- many. The changes of a tag are committed in the order of their numbers, so no later revision needs them either.
-- Parameters: batch integer.
WITH deleted AS (
    DELETE FROM "PayloadListMembership"
    WHERE id IN (
        SELECT member.id
        FROM "PayloadListMembership" AS member
        WHERE member.removed_in IS NOT NULL AND NOT EXISTS (
            SELECT FROM "GlobalTagChange" AS change
            WHERE change.tag_id = member.tag_id AND change.number >= member.added_in AND change.number < member.removed_in
                AND change.has_history AND change.action <> 'delete'
        )
        LIMIT %(batch)s
    )
    RETURNING 1
)
SELECT count(*) FROM deleted


-- name: delete_unneeded_tags
-- Delete the attributes of deleted global tags that have no revision with history, up to a number of rows. Returns how many.
-- Parameters: batch integer.
WITH deleted AS (
    DELETE FROM "DeletedGlobalTag"
    WHERE id IN (
        SELECT tag.id
        FROM "DeletedGlobalTag" AS tag
        WHERE NOT EXISTS (
            SELECT FROM "GlobalTagChange" AS change
            WHERE change.tag_id = tag.id AND change.has_history AND change.action <> 'delete'
        )
        LIMIT %(batch)s
    )
    RETURNING 1
)
SELECT count(*) FROM deleted
