-- Tags, payload lists and IOVs of the past.


-- name: past_global_tag
-- The attributes that a global tag, which may have been deleted since, had at a revision, and those of a status: author, description,
-- time of creation; id, description and time of creation of the status (null if there is no such status).
-- Parameters: tag_id, revision bigint, tag, status text: the names of the tag and of the status.
SELECT coalesce(later.texts ->> 'author', tag.author), coalesce(later.texts ->> 'description', tag.description), tag.created,
    status.id, status.description, status.created
FROM (
    SELECT author, description, created FROM "GlobalTag" WHERE id = %(tag_id)s
    UNION ALL
    SELECT author, description, created FROM "DeletedGlobalTag" WHERE id = %(tag_id)s
    LIMIT 1
) AS tag
LEFT JOIN LATERAL (
    SELECT source -> 'before' AS texts FROM "GlobalTagChange"
    WHERE global_tag = %(tag)s AND revision > %(revision)s AND tag_id = %(tag_id)s AND action = 'describe'
    ORDER BY revision
    LIMIT 1
) AS later ON true
LEFT JOIN "GlobalTagStatus" AS status ON status.name = %(status)s


-- name: payload_lists_after
-- The payload lists of a global tag after a change, by id: id, name, payload type, time of creation, version of then; and the list and
-- the version that have the rows (see the function cdb_rows_after).
-- Parameters: tag_id, number bigint.
SELECT member.payload_list_id, member.name, member.payload_type, member.created, coalesce((
    SELECT list_version.version FROM "PayloadListVersion" AS list_version
    WHERE list_version.payload_list_id = member.payload_list_id AND list_version.number <= %(number)s
    ORDER BY list_version.number DESC
    LIMIT 1
), 0), source.rows_list_id, source.rows_version
FROM "PayloadListMembership" AS member
CROSS JOIN LATERAL cdb_rows_after(member.payload_list_id, %(number)s) AS source
WHERE member.tag_id = %(tag_id)s AND member.added_in <= %(number)s
    AND (member.removed_in IS NULL OR member.removed_in > %(number)s)
ORDER BY member.payload_list_id


-- name: stored_iovs
-- The payload IOVs of a payload list in a version that start in a range, by start, as a part of other statements, in which it replaces
-- {stored_iovs}: `source` there has list_id and version, where the rows are, and the range, first and last.
-- Placeholder: {payload}. The function cdb_iovs_of has the same rows without what only the table has.
(
    SELECT id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, created, {payload}
    FROM "PayloadIOV"
    WHERE payload_list_id = source.list_id AND added_in <= source.version AND comb_iov BETWEEN source.first AND source.last
    ORDER BY comb_iov ASC NULLS FIRST
)
UNION ALL
(
    SELECT iov_id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, created, {payload}
    FROM "PayloadIOVHistory"
    WHERE source.version < 2147483646 AND payload_list_id = source.list_id AND row_start IS NULL
        AND added_in <= source.version AND removed_in > source.version AND comb_iov BETWEEN source.first AND source.last
    ORDER BY comb_iov ASC NULLS FIRST
)
ORDER BY comb_iov ASC NULLS FIRST


-- name: payload_iovs_of
-- The payload IOVs of payload lists in given versions, ordered by list and start, with their lists.
-- Parameters: list_ids, rows_list_ids bigint[], rows_versions integer[]: for each list, where its rows are; first, last numeric: the
--   combined moments at which the IOVs may start. Placeholders: {iov.payload}, {stored_iovs}.
-- Lists are read in order, so that no sort holds more than one list.
SELECT source.id AS payload_list_id, iov.id, iov.comb_iov, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    iov.created, {iov.payload}
FROM (
    SELECT id, list_id, version, %(first)s::numeric AS first, %(last)s::numeric AS last
    FROM unnest(%(list_ids)s::bigint[], %(rows_list_ids)s::bigint[], %(rows_versions)s::integer[])
        AS list (id, list_id, version)
) AS source
CROSS JOIN LATERAL (
{stored_iovs}
) AS iov


-- name: past_counts
-- The numbers of payload lists and of their payload IOVs of a global tag after a change.
-- Parameters: tag_id, number bigint.
-- The number of IOVs is stored with each version of a list, also of one that shares rows. It is counted for version 0 if nothing is
-- stored for that.
SELECT count(*), coalesce(sum(coalesce(
    (
        SELECT list_version.iov_count FROM "PayloadListVersion" AS list_version
        WHERE list_version.payload_list_id = member.payload_list_id AND list_version.number <= %(number)s
        ORDER BY list_version.number DESC
        LIMIT 1
    ),
    (
        SELECT count(*) FROM "PayloadIOV" AS iov
        WHERE iov.payload_list_id = member.payload_list_id AND iov.added_in = 0
    ) + (
        SELECT count(*) FROM "PayloadIOVHistory" AS history
        WHERE history.payload_list_id = member.payload_list_id AND history.row_start IS NULL AND history.added_in = 0
    )
)), 0)::bigint
FROM "PayloadListMembership" AS member
WHERE member.tag_id = %(tag_id)s AND member.added_in <= %(number)s
    AND (member.removed_in IS NULL OR member.removed_in > %(number)s)


-- name: change_rows
-- The payload IOVs that a change removed ('before') and added ('after'), in this order, then by list and start.
-- Parameters: sides text[]: the sides that are wanted; list_ids, rows_list_ids bigint[]: the lists, and those that have their rows;
--   befores, afters integer[]: the version of each of the latter before and after the change, null if the list was not in the tag. Placeholders for the payload columns: {payload} and {iov.payload}.
-- An IOV that only superseded itself, because its area grew, is left out.
SELECT iov.side, list.id AS payload_list_id, iov.id, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    {iov.payload}
FROM unnest(%(sides)s::text[]) AS wanted (side)
CROSS JOIN unnest(%(list_ids)s::bigint[], %(rows_list_ids)s::bigint[], %(befores)s::integer[], %(afters)s::integer[])
    AS list (id, rows_list_id, was, now)
CROSS JOIN LATERAL (
    SELECT wanted.side, history.iov_id AS id, history.comb_iov, history.major_iov, history.minor_iov, history.major_iov_end,
        history.minor_iov_end, {payload}
    FROM "PayloadIOVHistory" AS history
    WHERE wanted.side = 'before' AND history.payload_list_id = list.rows_list_id AND history.row_start IS NULL
        AND history.added_in <= list.was AND history.removed_in > list.was
        AND (list.now IS NULL OR history.removed_in <= list.now)
        AND NOT EXISTS (
            SELECT FROM "PayloadIOV" AS same
            WHERE same.id = history.iov_id AND same.payload_list_id = list.rows_list_id AND same.comb_iov = history.comb_iov
                AND (same.major_iov_end, same.minor_iov_end) = (history.major_iov_end, history.minor_iov_end)
                AND same.added_in <= list.now
        )
        AND NOT EXISTS (
            SELECT FROM "PayloadIOVHistory" AS same
            WHERE same.payload_list_id = list.rows_list_id AND same.iov_id = history.iov_id AND same.comb_iov = history.comb_iov
                AND (same.major_iov_end, same.minor_iov_end) = (history.major_iov_end, history.minor_iov_end)
                AND same.added_in > list.was AND same.added_in <= list.now AND same.removed_in > list.now
        )
    UNION ALL
    SELECT wanted.side, id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, {payload}
    FROM "PayloadIOV"
    WHERE wanted.side = 'before' AND list.now IS NULL AND payload_list_id = list.rows_list_id AND added_in <= list.was
    UNION ALL
    SELECT wanted.side, added.id, added.comb_iov, added.major_iov, added.minor_iov, added.major_iov_end, added.minor_iov_end,
        {payload}
    FROM (
        SELECT id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, {payload}
        FROM "PayloadIOV"
        WHERE payload_list_id = list.rows_list_id AND added_in <= list.now AND (list.was IS NULL OR added_in > list.was)
        UNION ALL
        SELECT iov_id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, {payload}
        FROM "PayloadIOVHistory"
        WHERE payload_list_id = list.rows_list_id AND row_start IS NULL AND added_in <= list.now AND removed_in > list.now
            AND (list.was IS NULL OR added_in > list.was)
    ) AS added
    WHERE wanted.side = 'after' AND NOT EXISTS (
        SELECT FROM "PayloadIOVHistory" AS same
        WHERE same.payload_list_id = list.rows_list_id AND same.iov_id = added.id AND same.comb_iov = added.comb_iov
            AND (same.major_iov_end, same.minor_iov_end) = (added.major_iov_end, added.minor_iov_end)
            AND same.added_in <= list.was AND same.removed_in > list.was AND same.removed_in <= list.now
    )
) AS iov
ORDER BY wanted.side DESC, list.id, iov.comb_iov
