-- Writes: locks, placing and storing rows, clones, the change log.


-- name: limit_write
-- Set the lock timeout and the statement timeout of this transaction, and tell the triggers that its writes record the history.
-- Parameters: lock text, in milliseconds; statement text, in milliseconds (null: unchanged).
SELECT
    set_config('lock_timeout', %(lock)s, true),
    set_config('statement_timeout', coalesce(%(statement)s, current_setting('statement_timeout')), true),
    set_config('cdb.records_history', 'on', true)


-- name: advisory_lock_shared
-- Take the advisory locks of global tags in shared mode until the transaction ends. Many writers can have them at a time.
-- Parameters: tag_ids bigint[], in ascending order.
-- With row locks only, new shared locks could overtake a waiting exclusive lock without end. Advisory locks have a queue.
SELECT pg_advisory_xact_lock_shared(hashtextextended('cdb global tag ' || tag_id, 0))
FROM unnest(%(tag_ids)s::bigint[]) AS tag_id


-- name: advisory_lock_exclusive
-- Take the advisory locks of global tags in exclusive mode until the transaction ends. It waits for the transactions that have
-- a shared lock, and later ones wait for it.
-- Parameters: tag_ids bigint[], in ascending order.
SELECT pg_advisory_xact_lock(hashtextextended('cdb global tag ' || tag_id, 0))
FROM unnest(%(tag_ids)s::bigint[]) AS tag_id


-- name: lock_global_tags_shared
-- Lock global tags against deletion and changes of status until the transaction ends. Returns the ids of those that exist.
-- Parameters: tag_ids bigint[].
-- FOR KEY SHARE is the weakest row lock: other writers to the same tags can take it at the same time, and the counts in the
-- same rows can still be updated.
SELECT id FROM "GlobalTag" WHERE id = ANY(%(tag_ids)s) ORDER BY id FOR KEY SHARE


-- name: lock_revision
-- Lock a revision of a global tag against the loss of its history until the transaction ends. Returns whether it has its history.
-- Parameters: tag text, revision bigint.
-- Any number of writers can read the same revision. The row is read again after a wait, so the result is that of now.
SELECT has_history FROM "GlobalTagChange" WHERE global_tag = %(tag)s AND revision = %(revision)s FOR SHARE


-- name: lock_revisions
-- Lock the revisions of several global tags in the order of their ids, as all writers do.
-- Parameters: tag_ids bigint[].
SELECT FROM "GlobalTag" WHERE id = ANY(%(tag_ids)s) ORDER BY id FOR NO KEY UPDATE


-- name: neighbours
-- The IOVs in and around ranges of payload lists: those that start in a range, and the nearest one on either side of it.
-- Parameters: list_ids bigint[]; firsts, lasts numeric[]: combined moments, both inclusive; one element for each range.
-- Expected plan: for each range three scans of payload_iov_lookup, two of which stop at their first row.
SELECT DISTINCT ON (near.id) near.*
FROM unnest(%(list_ids)s::bigint[], %(firsts)s::numeric[], %(lasts)s::numeric[]) AS stretch (list_id, first, last)
CROSS JOIN LATERAL (
    (
        SELECT * FROM "PayloadIOV" AS earlier
        WHERE earlier.payload_list_id = stretch.list_id AND earlier.comb_iov < stretch.first
        ORDER BY earlier.comb_iov DESC NULLS LAST
        LIMIT 1
    )
    UNION ALL
    (
        SELECT * FROM "PayloadIOV" AS inside
        WHERE inside.payload_list_id = stretch.list_id AND inside.comb_iov BETWEEN stretch.first AND stretch.last
    )
    UNION ALL
    (
        SELECT * FROM "PayloadIOV" AS later
        WHERE later.payload_list_id = stretch.list_id AND later.comb_iov > stretch.last
        ORDER BY later.comb_iov ASC NULLS FIRST
        LIMIT 1
    )
) AS near


-- name: place_payload_iovs
-- Change the interval and the payload list of payload IOVs. One that is detached belongs to the managers of the global tag that
-- it leaves, or to the creator of its detached list.
-- Parameters: ids, payload_list_ids (null: detached), major_iovs, minor_iovs, major_iov_ends, minor_iov_ends bigint[], added_ins
--   integer[] (versions of the lists), with one element for each IOV.
UPDATE "PayloadIOV" AS iov
SET payload_list_id = place.payload_list_id, major_iov = place.major_iov, minor_iov = place.minor_iov,
    major_iov_end = place.major_iov_end, minor_iov_end = place.minor_iov_end,
    added_in = place.added_in, updated = statement_timestamp(),
    left_tag = CASE WHEN place.payload_list_id IS NULL THEN place.left_tag END,
    creator = CASE WHEN place.payload_list_id IS NULL THEN place.creator ELSE iov.creator END
FROM (
    SELECT wanted.*, coalesce(tag.name, list.left_tag) AS left_tag, CASE WHEN tag.id IS NULL THEN list.creator END AS creator
    FROM unnest(
        %(ids)s::bigint[], %(payload_list_ids)s::bigint[], %(major_iovs)s::bigint[], %(minor_iovs)s::bigint[],
        %(major_iov_ends)s::bigint[], %(minor_iov_ends)s::bigint[], %(added_ins)s::integer[]
    ) AS wanted (id, payload_list_id, major_iov, minor_iov, major_iov_end, minor_iov_end, added_in)
    JOIN "PayloadIOV" AS stored ON stored.id = wanted.id
    LEFT JOIN "PayloadList" AS list ON list.id = stored.payload_list_id
    LEFT JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id
) AS place
WHERE iov.id = place.id


-- name: lock_positions
-- Let positions be given by one transaction at a time.
SELECT pg_advisory_xact_lock(3237998084)


-- name: number_changes
-- Give changes without a position the next one, in the order of their numbers; those with the same number get the same one.
-- Parameters: most integer: how many changes at most, besides further ones with the last number.
-- It must be a statement after that of `lock_positions`, so that it sees all positions given before. A tag's changes are numbered
-- while the tag is locked, so whoever sees one of them also sees the earlier ones. After a failover or a restoration, positions
-- continue where no lost one can have been (cdb_revision_floor).
WITH floor AS MATERIALIZED (
    SELECT greatest((SELECT max(position) FROM "GlobalTagChange"), cdb_revision_floor() - 1) AS position
),
new AS (
    SELECT id, dense_rank() OVER (ORDER BY number) AS place FROM "GlobalTagChange"
    WHERE position IS NULL AND number <= (
        SELECT max(number) FROM (
            SELECT number FROM "GlobalTagChange" WHERE position IS NULL ORDER BY number LIMIT %(most)s
        ) AS first
    )
)
UPDATE "GlobalTagChange" AS change SET position = floor.position + new.place
FROM new, floor
WHERE change.id = new.id


-- name: claim_subscriptions
-- Take subscriptions that have changes to send for a time, in which no other process takes them: their ids.
-- Parameters: most integer; seconds float: the time.
WITH due AS MATERIALIZED (
    SELECT id FROM "Subscription" AS subscription
    WHERE stopped IS NULL AND next_attempt <= now() AND (
        EXISTS (SELECT FROM "GlobalTagChange" WHERE position > subscription.delivered)
        OR EXISTS (SELECT FROM "GlobalTagChange" WHERE position IS NULL)
    )
    ORDER BY next_attempt
    LIMIT %(most)s
    FOR UPDATE SKIP LOCKED
)
UPDATE "Subscription" AS subscription SET next_attempt = now() + make_interval(secs => %(seconds)s) FROM due WHERE subscription.id = due.id
RETURNING subscription.id


-- name: try_lock_mail
-- Whether this transaction may send mail about requests; only one at a time may.
SELECT pg_try_advisory_xact_lock(3237998085)


-- name: lock_requester
-- Let the requests of one person be made one after the other, until the transaction ends.
-- Parameters: requester text.
SELECT pg_advisory_xact_lock(hashtextextended(%(requester)s, 3237998083))


-- name: next_payload_iov_ids
-- Reserve ids for new payload IOVs.
-- Parameters: count integer: how many.
-- The name of the sequence is looked up once.
SELECT nextval(sequence.name)
FROM (SELECT pg_get_serial_sequence('"PayloadIOV"', 'id')::regclass AS name OFFSET 0) AS sequence
CROSS JOIN generate_series(1, %(count)s)


-- name: insert_payload_iovs
-- Insert payload IOVs with given ids.
-- Parameters: an array for each column, with one element for each IOV. Placeholders: {payload} for the payload columns, and
-- {payload_arrays} for their parameters, arrays of the types of the columns.
INSERT INTO "PayloadIOV" (
    id, payload_list_id, major_iov, minor_iov, major_iov_end, minor_iov_end, added_in, creator, {payload}
)
SELECT * FROM unnest(
    %(ids)s::bigint[], %(payload_list_ids)s::bigint[], %(major_iovs)s::bigint[], %(minor_iovs)s::bigint[],
    %(major_iov_ends)s::bigint[], %(minor_iov_ends)s::bigint[], %(added_ins)s::integer[], %(creators)s::text[],
    {payload_arrays}
)


-- name: store_superseded
-- Store areas of present payload IOVs in the history, before they change. An area that began with this change is left out.
-- Parameters: ids bigint[]: the IOVs; sinces, untils numeric[]: the areas as combined moments; since null: the whole row, which is
--   stored with its columns; until null: to the end of time; versions integer[]: those of the lists after the change.
-- Placeholders for the payload columns: {payload} and {iov.payload_if_whole}.
INSERT INTO "PayloadIOVHistory" (
    payload_list_id, node, comb_iov, until, added_in, removed_in, row_start, iov_id, major_iov, minor_iov, major_iov_end,
    minor_iov_end, created, {payload}
)
SELECT iov.payload_list_id, cdb_fork_node(iov.added_in, area.version), coalesce(area.since, iov.comb_iov), area.until,
    iov.added_in, area.version, CASE WHEN area.since IS NOT NULL THEN iov.comb_iov END,
    CASE WHEN area.since IS NULL THEN iov.id END, CASE WHEN area.since IS NULL THEN iov.major_iov END,
    CASE WHEN area.since IS NULL THEN iov.minor_iov END, CASE WHEN area.since IS NULL THEN iov.major_iov_end END,
    CASE WHEN area.since IS NULL THEN iov.minor_iov_end END, CASE WHEN area.since IS NULL THEN iov.created END,
    {iov.payload_if_whole}
FROM unnest(%(ids)s::bigint[], %(sinces)s::numeric[], %(untils)s::numeric[], %(versions)s::integer[])
    AS area (id, since, until, version)
JOIN "PayloadIOV" AS iov ON iov.id = area.id
WHERE iov.added_in < area.version


-- name: store_superseded_lists
-- Store all IOVs of payload lists in the history, before they are deleted.
-- Parameters: list_ids bigint[]. Placeholders for the payload columns: {payload} and {iov.payload}.
INSERT INTO "PayloadIOVHistory" (
    payload_list_id, node, comb_iov, until, added_in, removed_in, iov_id, major_iov, minor_iov, major_iov_end, minor_iov_end,
    created, {payload}
)
SELECT iov.payload_list_id, cdb_fork_node(iov.added_in, list.version + 1), iov.comb_iov,
    lag(iov.comb_iov) OVER (PARTITION BY iov.payload_list_id ORDER BY iov.comb_iov DESC NULLS LAST),
    iov.added_in, list.version + 1, iov.id, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end, iov.created,
    {iov.payload}
FROM "PayloadList" AS list
JOIN "PayloadIOV" AS iov ON iov.payload_list_id = list.id
WHERE list.id = ANY(%(list_ids)s)


-- name: record_changes
-- Record a change: a number, a new version of each changed payload list, and for each changed global tag a new revision with an
-- entry in the change log. Returns the names and the revisions of the tags.
-- Parameters: list_ids bigint[]: payload lists whose rows changed; tag_ids bigint[]: the tags; has_other_lists boolean[]: whether
--   lists were attached to the tag, detached or deleted; sources text[] (JSON or null); iovs_before, iovs_after bigint[]:
--   numbers of IOVs that were removed and added; one element for each tag; actor, action, comment text.
-- A tag whose name was used before continues the revisions in the log of that name. After a restoration of the database, or the
-- promotion of a standby, revisions continue where no lost change can have been (cdb_revision_floor). The number is assigned after
-- the tags are locked by the first UPDATE, so the numbers of a tag have the order of its revisions.
-- A tag that was never recorded has lists of which the history does not know yet. The deletion of a tag ends all of its lists.
WITH floor AS MATERIALIZED (
    SELECT cdb_revision_floor() AS revision
),
raised AS (
    UPDATE "GlobalTag" AS tag
    -- Whole seconds, later than all earlier ones of this name, and sent to clients only once passed: unique for each state.
    SET last_modified = greatest(tag.last_modified, date_trunc('second', clock_timestamp())) + interval '1 second',
        updated = clock_timestamp(), revision = 1 + greatest(
        tag.revision,
        (SELECT max(change.revision) FROM "GlobalTagChange" AS change WHERE change.global_tag = tag.name),
        (SELECT floor.revision - 1 FROM floor)
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
    RETURNING list.id, list.version, list.iov_count, list.base_list_id, list.base_version
),
list_version AS (
    INSERT INTO "PayloadListVersion" (payload_list_id, number, version, iov_count, base_list_id, base_version)
    SELECT new_version.id, numbered.number, new_version.version, new_version.iov_count, new_version.base_list_id,
        new_version.base_version
    FROM new_version, numbered
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


-- name: create_payload_lists
-- Create payload lists, each named after its type and its own id, detached or in a global tag. Returns their ids in order.
-- Parameters: payload_type_ids bigint[], global_tag_ids bigint[] (null: detached), one element for each list; creator text.
INSERT INTO "PayloadList" (id, name, payload_type_id, global_tag_id, creator)
SELECT new.id, payload_type.name || '_' || new.id, payload_type.id, new.global_tag_id, %(creator)s
FROM (
    SELECT nextval(pg_get_serial_sequence('"PayloadList"', 'id')) AS id, payload_type_id, global_tag_id, position
    FROM unnest(%(payload_type_ids)s::bigint[], %(global_tag_ids)s::bigint[])
        WITH ORDINALITY AS wanted (payload_type_id, global_tag_id, position)
) AS new
JOIN "PayloadType" AS payload_type ON payload_type.id = new.payload_type_id
ORDER BY new.position
RETURNING id


-- name: clone_global_tag
-- Give a global tag that has no payload lists those of another tag: each new list shares the rows of the list as it is now. Returns the
-- revision of the source.
-- Parameters: source_id, target_id bigint. The caller must record a change of the lists.
-- The new lists are numbered in the order of the lists of the source, in which responses contain them.
-- A single statement sees one snapshot, so the new lists have a state that the source really had, in spite of concurrent writes. It
-- takes no lock that blocks readers or writers of the source.
WITH source AS (
    SELECT ordered.*, nextval(pg_get_serial_sequence('"PayloadList"', 'id')) AS new_id
    FROM (
        SELECT list.description, list.payload_type_id, payload_type.name AS type_name, list.rows_list_id, list.iov_count,
            list.edited, coalesce(list.base_version, list.version) AS version
        FROM "PayloadList" AS list
        JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
        WHERE list.global_tag_id = %(source_id)s
        ORDER BY list.id
    ) AS ordered
),
shared_list AS (
    INSERT INTO "PayloadList" (
        id, name, description, global_tag_id, payload_type_id, iov_count, edited, base_list_id, base_version
    )
    SELECT new_id, type_name || '_' || new_id, description, %(target_id)s, payload_type_id, iov_count, edited, rows_list_id, version
    FROM source
)
SELECT tag.revision
FROM "GlobalTag" AS tag
WHERE tag.id = %(source_id)s


-- name: clone_past
-- As `clone_global_tag`, for the payload lists that a global tag had after a change: each new list shares the rows of the list of
-- then. Returns whether the history of the change was there, and the number of lists.
-- Parameters: tag text, revision bigint: the change; tag_id, number bigint: its tag and number; target_id bigint.
-- A list whose payload type was deleted is left out. A list that was deleted has no description any more.
-- A single statement sees one snapshot, so no rows can be missing if the history of the change is there.
WITH source AS MATERIALIZED (
    SELECT ordered.*, nextval(pg_get_serial_sequence('"PayloadList"', 'id')) AS new_id
    FROM (
        SELECT coalesce(list.description, '') AS description, payload_type.id AS payload_type_id,
            payload_type.name AS type_name, source.rows_list_id, source.rows_version, coalesce(
                (
                    SELECT list_version.iov_count FROM "PayloadListVersion" AS list_version
                    WHERE list_version.payload_list_id = member.payload_list_id AND list_version.number <= %(number)s
                    ORDER BY list_version.number DESC
                    LIMIT 1
                ),
                (SELECT count(*) FROM cdb_iovs_of(source.rows_list_id, source.rows_version, 0, 'Infinity'))
            ) AS iov_count,
            -- Compiled lists know it as another one than any before, if nobody knows whether rows of a deleted list were edited.
            coalesce(base.edited, nextval('cdb_change_number')) AS edited
        FROM "PayloadListMembership" AS member
        CROSS JOIN LATERAL cdb_rows_after(member.payload_list_id, %(number)s) AS source
        JOIN "PayloadType" AS payload_type ON payload_type.name = member.payload_type
        LEFT JOIN "PayloadList" AS list ON list.id = member.payload_list_id
        LEFT JOIN "PayloadList" AS base ON base.id = source.rows_list_id
        WHERE member.tag_id = %(tag_id)s AND member.added_in <= %(number)s
            AND (member.removed_in IS NULL OR member.removed_in > %(number)s)
        ORDER BY member.payload_list_id
    ) AS ordered
),
shared_list AS (
    INSERT INTO "PayloadList" (
        id, name, description, global_tag_id, payload_type_id, iov_count, edited, base_list_id, base_version
    )
    SELECT new_id, type_name || '_' || new_id, description, %(target_id)s, payload_type_id, iov_count, edited, rows_list_id,
        rows_version
    FROM source
)
SELECT
    EXISTS (
        SELECT FROM "GlobalTagChange"
        WHERE global_tag = %(tag)s AND revision = %(revision)s AND has_history
    ),
    (SELECT count(*) FROM source)


-- name: unshare
-- Give payload lists that share rows of a base copies of these rows, and nothing else. Returns the ids of these lists.
-- Parameters: list_ids bigint[]. The lists must be locked. Placeholders: {payload}, {iov.payload}, {stored_iovs}.
-- The copies are in the version in which the list has shared them. The trigger adds their number to the count of the list, after the
-- statement, so that the count is 0 before.
WITH source AS (
    SELECT id, version AS shared_in, base_list_id AS list_id, base_version AS version, 0::numeric AS first,
        'Infinity'::numeric AS last
    FROM "PayloadList"
    WHERE id = ANY(%(list_ids)s) AND base_list_id IS NOT NULL
),
copied AS (
    INSERT INTO "PayloadIOV" (
        {payload}, major_iov, minor_iov, major_iov_end, minor_iov_end, payload_list_id, added_in
    )
    SELECT {iov.payload}, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end, source.id, source.shared_in
    FROM source
    CROSS JOIN LATERAL (
{stored_iovs}
    ) AS iov
)
UPDATE "PayloadList" AS list SET base_list_id = NULL, base_version = NULL, iov_count = 0
FROM source
WHERE list.id = source.id
RETURNING list.id


-- name: is_shared
-- Whether other payload lists, or versions of lists, share a row of a payload list: one row if so.
-- Parameters: list_id bigint; added_in integer: the version since which the row is there.
SELECT 1 FROM "PayloadList" WHERE base_list_id = %(list_id)s AND base_version >= %(added_in)s
UNION ALL
SELECT 1 FROM "PayloadListVersion" WHERE base_list_id = %(list_id)s AND base_version >= %(added_in)s
LIMIT 1


-- name: shared_neighbours
-- As `neighbours`, for payload lists that share rows: the IOVs have the lists that share them.
-- Parameters: those of `neighbours`. Placeholders: {iov.payload}, {stored_iovs}.
SELECT DISTINCT ON (source.id, iov.id) iov.id, source.id AS payload_list_id, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, {iov.payload}, source.shared_in AS added_in, NULL AS creator, NULL AS left_tag
FROM (
    SELECT list.id, list.version AS shared_in, list.rows_list_id AS list_id, list.rows_version AS version,
        coalesce(earlier.start, stretch.first) AS first, coalesce(later.start, stretch.last) AS last
    FROM unnest(%(list_ids)s::bigint[], %(firsts)s::numeric[], %(lasts)s::numeric[]) AS stretch (list_id, first, last)
    JOIN "PayloadList" AS list ON list.id = stretch.list_id
    CROSS JOIN LATERAL (
        SELECT max(comb_iov) AS start FROM cdb_iov_at(list.rows_list_id, list.rows_version, stretch.first - 0.0000000000000000001)
    ) AS earlier
    CROSS JOIN LATERAL cdb_next_start(list.rows_list_id, list.rows_version, stretch.last) AS later
) AS source
CROSS JOIN LATERAL (
{stored_iovs}
) AS iov


-- name: delete_payload_lists
-- Delete payload lists that have no rows. Parameters: list_ids bigint[].
-- Django would first search the rows of all of these lists, with a scan of the whole table if they are many.
DELETE FROM "PayloadList" WHERE id = ANY(%(list_ids)s)
