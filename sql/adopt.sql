-- Adoption of databases of nopayloaddb. Statements named source_* run in the source, and only read it. Their placeholders are replaced by
-- expressions for its variant (cdb_rest/adopt/catalog.py).


-- name: source_columns
-- The columns of the tables of nopayloaddb, in all schemas: schema, table, column, type, whether it is generated, whether its default
-- is an identity, its default. Parameters: tables text[].
SELECT namespace.nspname, class.relname, attribute.attname, format_type(attribute.atttypid, attribute.atttypmod),
    attribute.attgenerated <> '', attribute.attidentity <> '', coalesce(pg_get_expr(def.adbin, def.adrelid), '')
FROM pg_class AS class
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum > 0 AND NOT attribute.attisdropped
LEFT JOIN pg_attrdef AS def ON def.adrelid = class.oid AND def.adnum = attribute.attnum
WHERE class.relname = ANY(%(tables)s) AND class.relkind IN ('r', 'p') AND namespace.nspname !~ '^pg_'
ORDER BY namespace.nspname, class.relname, attribute.attnum


-- name: source_objects
-- What may have been added or removed by hand: kind, table, name, definition, whether it is valid. Parameters: schema text.
SELECT 'index', class.relname, index_class.relname, pg_get_indexdef(index.indexrelid), index.indisvalid
FROM pg_index AS index
JOIN pg_class AS index_class ON index_class.oid = index.indexrelid
JOIN pg_class AS class ON class.oid = index.indrelid
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = %(schema)s AND class.relname = 'PayloadIOV'
UNION ALL
SELECT 'trigger', class.relname, trigger.tgname, pg_get_triggerdef(trigger.oid), true
FROM pg_trigger AS trigger
JOIN pg_class AS class ON class.oid = trigger.tgrelid
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = %(schema)s AND NOT trigger.tgisinternal
UNION ALL
SELECT 'foreign key', class.relname, con.conname, pg_get_constraintdef(con.oid), con.convalidated
FROM pg_constraint AS con
JOIN pg_class AS class ON class.oid = con.conrelid
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = %(schema)s AND con.contype = 'f'
ORDER BY 1, 2, 3


-- name: source_identity
-- The identifier of the PostgreSQL system, which its standbys share, and the name of the database. No parameters.
SELECT system_identifier || '/' || current_database() FROM pg_control_system()


-- name: source_server
-- The version of the server, whether it is a standby, and its hot_standby_feedback. No parameters.
SELECT current_setting('server_version'), pg_is_in_recovery(), current_setting('hot_standby_feedback')


-- name: begin_source_snapshot
-- Begin a read-only transaction with one snapshot, and return that. Parameters: schema, timeout text (milliseconds).
-- Settings of the transaction, not of the session, so that it works behind a pooler, too.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT set_config('search_path', quote_ident(%(schema)s) || ', pg_catalog', true), set_config('statement_timeout', %(timeout)s, true),
    set_config('timezone', 'UTC', true), set_config('work_mem', '64MB', true), set_config('jit', 'off', true);
SELECT txid_current_snapshot()::text


-- name: declare_source_cursor
-- Declare the cursor for the rows of a long result. Placeholder: {statement}, with its parameters.
DECLARE cdb_rows NO SCROLL CURSOR FOR
{statement}


-- name: fetch_source_cursor
-- The next rows of the cursor. No parameters.
FETCH 2000 FROM cdb_rows


-- name: close_source_cursor
-- Close the cursor. No parameters.
CLOSE cdb_rows


-- name: source_tags
-- The global tags: id, name, author, description, name of the status (null if there is none), times. No parameters.
SELECT tag.id, tag.name, {tag.author}, {tag.description}, status.name, tag.created, tag.updated
FROM "GlobalTag" AS tag
LEFT JOIN "GlobalTagStatus" AS status ON status.{status_key} = tag.status_id
ORDER BY tag.id


-- name: source_types
-- The payload types: id (null if the variant has none), name, description, time of creation. No parameters.
SELECT {type.id}, type.name, {type.description}, type.created FROM "PayloadType" AS type ORDER BY 1, type.name


-- name: source_lists
-- The payload lists: id, name, description, id of the global tag (null if there is none), name of the payload type (null if there is
-- none), times. Parameters: tag_id bigint (null: all lists).
SELECT list.id, list.name, {list.description}, tag.id, type.name, list.created, list.updated
FROM "PayloadList" AS list
LEFT JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id
LEFT JOIN "PayloadType" AS type ON type.{type_key} = list.payload_type_id
WHERE %(tag_id)s::bigint IS NULL OR list.global_tag_id = %(tag_id)s
ORDER BY list.id


-- name: source_greatest_id
-- The greatest id of any object, and the number of IOVs. No parameters.
SELECT greatest(
    (SELECT max(id) FROM "GlobalTag"), (SELECT max(id) FROM "PayloadList"), (SELECT max(id) FROM "PayloadIOV"), {sequence}, 0
), (SELECT count(*) FROM "PayloadIOV")


-- name: source_orphans
-- The numbers of IOVs and of payload lists that refer to a list or tag that does not exist, and of IOVs with a description, which is not
-- taken over. No parameters.
SELECT (
    SELECT count(*) FROM "PayloadIOV" AS iov
    WHERE iov.payload_list_id IS NOT NULL AND NOT EXISTS (SELECT FROM "PayloadList" WHERE id = iov.payload_list_id)
), (
    SELECT count(*) FROM "PayloadList" AS list
    WHERE list.global_tag_id IS NOT NULL AND NOT EXISTS (SELECT FROM "GlobalTag" WHERE id = list.global_tag_id)
), (SELECT count(*) FROM "PayloadIOV" AS iov WHERE {iov.description} <> '')


-- name: source_rows
-- Payload IOVs as they are adopted, as a part of other statements, which replaces {rows} there. {condition} chooses the rows.
-- Parameters: inclusive boolean: whether ends are inclusive; detaching, opening text[]: the faults that detach a row or open its end.
-- Each row has its columns after the decisions, a column for each fault, and whether it stays attached. The rows are ordered by
-- descending start; of several with the same start the first is the newest one that is not detached for another reason.
SELECT judged.id, judged.payload_url, judged.checksum, judged.size, judged.major_iov, judged.minor_iov,
    CASE WHEN judged.opens AND fate.stays THEN 9223372036854775807 ELSE judged.major_iov_end END AS major_iov_end,
    CASE WHEN judged.opens AND fate.stays THEN 9223372036854775807 ELSE judged.minor_iov_end END AS minor_iov_end,
    CASE WHEN NOT judged.bad_revision THEN judged.extra END AS extra, judged.created, judged.updated,
    judged.right_comb, judged.stored_comb, judged.negative, judged.end_before_start, judged.empty, judged.null_comb_iov,
    judged.open_at_major, judged.bad_revision, judged.same_start AS equal_starts,
    NOT judged.negative AND judged.stored_comb IS DISTINCT FROM judged.right_comb AND NOT judged.null_comb_iov AND {has_comb}
        AS wrong_comb_iov,
    coalesce(
        NOT judged.same_start AND (judged.major_iov_end, judged.minor_iov_end) > (judged.next_major, judged.next_minor), false
    ) AS overlap,
    fate.stays AS attached
FROM (
    SELECT flagged.*, lag(flagged.major_iov) OVER newest_first AS next_major,
        lag(flagged.minor_iov) OVER newest_first AS next_minor,
        NOT flagged.leaves AND coalesce((flagged.major_iov, flagged.minor_iov) = (
            lag(flagged.major_iov) OVER newest_first, lag(flagged.minor_iov) OVER newest_first
        ), false) AS same_start
    FROM (
        SELECT plain.*, 'open_at_major' = ANY(%(opening)s) AND plain.open_at_major
            OR 'end_before_start' = ANY(%(opening)s) AND plain.end_before_start AS opens,
            'negative' = ANY(%(detaching)s) AND plain.negative
            OR 'end_before_start' = ANY(%(detaching)s) AND plain.end_before_start
            OR 'empty' = ANY(%(detaching)s) AND plain.empty
            OR 'null_comb_iov' = ANY(%(detaching)s) AND plain.null_comb_iov AS leaves
        FROM (
            SELECT named.*, (named.major_iov + named.minor_iov * 0.0000000000000000001)::numeric(38, 19) AS right_comb,
                least(named.major_iov, named.minor_iov, named.major_iov_end, named.minor_iov_end) < 0 AS negative,
                least(named.major_iov, named.minor_iov, named.major_iov_end, named.minor_iov_end) >= 0
                AND (named.major_iov_end, named.minor_iov_end) < (named.major_iov, named.minor_iov) AS end_before_start,
                NOT %(inclusive)s AND named.major_iov >= 0 AND named.minor_iov >= 0
                AND (named.major_iov_end, named.minor_iov_end) = (named.major_iov, named.minor_iov)
                AND (named.major_iov, named.minor_iov) < (9223372036854775807, 9223372036854775807) AS empty,
                {has_comb} AND named.stored_comb IS NULL AS null_comb_iov,
                NOT %(inclusive)s AND named.major_iov_end = named.major_iov AND named.minor_iov_end = 9223372036854775807
                AND named.major_iov < 9223372036854775807 AS open_at_major,
                coalesce(named.extra !~ '^[0-9]{1,19}$', false) AS bad_revision
            FROM (
                SELECT iov.id::bigint AS id, {iov.columns}
                FROM "PayloadIOV" AS iov
                WHERE {condition}
            ) AS named
        ) AS plain
    ) AS flagged
    WINDOW newest_first AS (ORDER BY flagged.major_iov DESC, flagged.minor_iov DESC, flagged.leaves, flagged.id DESC)
) AS judged
CROSS JOIN LATERAL (
    SELECT NOT judged.leaves AND NOT (judged.same_start AND 'equal_starts' = ANY(%(detaching)s)) AS stays
) AS fate


-- name: source_summary
-- For each payload list the number of its rows, of those that stay attached, a hash of these, and the number of rows with each fault.
-- Parameters: list_ids bigint[], and those of `source_rows`, which replaces {rows}.
-- The hash is the sum of the hashes of the rows, which have no order: a start is there once.
-- Expected plan: for each list an index scan and a sort.
SELECT list.id, count(iov.id), count(iov.id) FILTER (WHERE iov.attached),
    coalesce(sum({hash}) FILTER (WHERE iov.attached), 0)::text, {faults}
FROM unnest(%(list_ids)s::bigint[]) AS list (id)
LEFT JOIN LATERAL (
{rows}
) AS iov ON true
GROUP BY list.id
ORDER BY list.id


-- name: row_hash
-- A hash of an IOV as a lookup returns it, which any PostgreSQL computes alike, as a part of other statements.
('x' || left(md5(concat_ws(
    E'\x1f', iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end, iov.extra
)), 16))::bit(64)::bigint


-- name: source_examples
-- Up to `most` rows with a fault in payload lists: id, id of the list, URL, interval, stored comb_iov.
-- Parameters: list_ids bigint[], most integer, and those of `source_rows`, which replaces {rows}. Placeholder: {fault}.
SELECT iov.id, list.id, iov.payload_url, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end, iov.stored_comb
FROM unnest(%(list_ids)s::bigint[]) AS list (id)
CROSS JOIN LATERAL (
{rows}
) AS iov
WHERE iov.{fault}
LIMIT %(most)s


-- name: source_changed_answers
-- The intervals in which the old lookup finds another row of a payload list than a lookup after the adoption: from, until (combined
-- moments, until null: to the end of time), URLs of the old and the new row (null: none), by start. Parameters: list_ids bigint[] (one),
-- and those of `source_rows`, which replaces {rows}.
-- Both change only at stored and right values of comb_iov. Of several rows with the same stored value the old lookup usually finds the
-- oldest one.
WITH row AS MATERIALIZED (
    SELECT iov.*, CASE WHEN {has_comb} THEN iov.stored_comb ELSE iov.right_comb END AS old_comb
    FROM unnest(%(list_ids)s::bigint[]) AS list (id) CROSS JOIN LATERAL (
{rows}
    ) AS iov
),
event AS (
    SELECT moment, min(old_id) AS old_id, max(new_id) AS new_id
    FROM (
        SELECT old_comb AS moment, id AS old_id, NULL::bigint AS new_id FROM row WHERE old_comb IS NOT NULL
        UNION ALL
        SELECT right_comb, NULL, id FROM row WHERE attached
    ) AS change
    GROUP BY moment
),
numbered AS (
    SELECT event.*, count(old_id) OVER in_order AS old_number, count(new_id) OVER in_order AS new_number
    FROM event
    WINDOW in_order AS (ORDER BY moment)
),
answer AS (
    SELECT moment, lead(moment) OVER (ORDER BY moment) AS until, max(old_id) OVER (PARTITION BY old_number) AS old_id,
        max(new_id) OVER (PARTITION BY new_number) AS new_id
    FROM numbered
)
SELECT answer.moment, answer.until, old.payload_url, new.payload_url
FROM answer
LEFT JOIN row AS old ON old.id = answer.old_id
LEFT JOIN row AS new ON new.id = answer.new_id
WHERE answer.old_id IS DISTINCT FROM answer.new_id
ORDER BY answer.moment


-- name: source_stored_answers
-- What the old lookup may find in payload lists at a moment by the stored comb_iov: id of the list and URL, several if several rows have
-- the same comb_iov. Parameters: list_ids bigint[], moment numeric, and those of `source_rows`, which replaces {rows}.
SELECT found.list_id, found.payload_url
FROM (
    SELECT list.id AS list_id, iov.payload_url, rank() OVER (PARTITION BY list.id ORDER BY comb.iov DESC) AS place
    FROM unnest(%(list_ids)s::bigint[]) AS list (id)
    CROSS JOIN LATERAL (
{rows}
    ) AS iov
    CROSS JOIN LATERAL (SELECT CASE WHEN {has_comb} THEN iov.stored_comb ELSE iov.right_comb END) AS comb (iov)
    WHERE comb.iov <= %(moment)s
) AS found
WHERE found.place = 1


-- name: source_attached
-- The rows of a payload list that stay attached, as lookups return them, by start. Parameters: those of `source_summary`, with one list.
SELECT iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end, iov.extra
FROM unnest(%(list_ids)s::bigint[]) AS list (id)
CROSS JOIN LATERAL (
{rows}
) AS iov
WHERE iov.attached
ORDER BY iov.major_iov, iov.minor_iov


-- name: copy_source_rows
-- Send the rows of payload lists to the client. Parameters: list_ids bigint[]; with_attached, with_detached boolean: those that stay
-- attached, and those that the decisions detach; and those of `source_rows`, which replaces {rows}.
COPY (
SELECT list.id, iov.attached, iov.id, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra, iov.created, iov.updated
FROM unnest(%(list_ids)s::bigint[]) AS list (id)
CROSS JOIN LATERAL (
{rows}
) AS iov
WHERE CASE WHEN iov.attached THEN %(with_attached)s ELSE %(with_detached)s END
) TO STDOUT


-- name: copy_source_detached
-- Send the IOVs that are in no payload list to the client. Parameters: those of `source_rows`, which replaces {rows}.
COPY (
SELECT NULL::bigint, false, iov.id, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra, iov.created, iov.updated
FROM (
{rows}
) AS iov
ORDER BY iov.id
) TO STDOUT


-- name: create_adopted_rows
-- Create the temporary table for rows of the source, if this transaction has none. No parameters.
CREATE TEMPORARY TABLE IF NOT EXISTS cdb_adopted (
    list_id bigint, attached boolean, id bigint, payload_url text, checksum text, size bigint, major_iov bigint, minor_iov bigint,
    major_iov_end bigint, minor_iov_end bigint, extra text, created timestamptz, updated timestamptz
) ON COMMIT DROP


-- name: empty_adopted_rows
-- Delete all rows of the temporary table. No parameters.
TRUNCATE cdb_adopted


-- name: copy_adopted_rows
-- Take rows of the source from the client. No parameters.
COPY cdb_adopted FROM STDIN


-- name: insert_adopted_rows
-- Store the rows of cdb_adopted in new payload lists, or detached. An id that is taken is replaced by a new one.
-- Parameters: source_list_ids, list_ids bigint[]: the lists in the source and here; left_tags text[]: their global tags, for rows that
--   are detached (null: none); keeps_ids boolean.
-- Expected plan: for each row an Index Only Scan of the primary key. A hash join would read the whole table for each part of a tag.
SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true);
INSERT INTO "PayloadIOV" (
    id, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, payload_list_id, added_in, created,
    updated, left_tag
)
SELECT CASE
        WHEN %(keeps_ids)s AND taken.id IS NULL THEN adopted.id
        ELSE nextval(pg_get_serial_sequence('"PayloadIOV"', 'id'))
    END, adopted.payload_url, adopted.checksum, adopted.size, adopted.major_iov, adopted.minor_iov, adopted.major_iov_end,
    adopted.minor_iov_end, adopted.extra, CASE WHEN adopted.attached THEN list.id END, adopted.attached::integer, adopted.created,
    adopted.updated, CASE WHEN NOT adopted.attached THEN list.left_tag END
FROM cdb_adopted AS adopted
LEFT JOIN "PayloadIOV" AS taken ON taken.id = adopted.id
LEFT JOIN unnest(%(source_list_ids)s::bigint[], %(list_ids)s::bigint[], %(left_tags)s::text[]) AS list (source_id, id, left_tag)
    ON list.source_id = adopted.list_id


-- name: rows_near_differences
-- The ids in the source of rows of cdb_adopted that a payload list does not have, and the ids of its rows that are not in cdb_adopted,
-- with the rows before and after each of them: two arrays. Parameters: source_list_id, list_id bigint.
SELECT coalesce(array_agg(near.adopted_id) FILTER (WHERE near.adopted_id IS NOT NULL), '{}'),
    coalesce(array_agg(near.stored_id) FILTER (WHERE near.stored_id IS NOT NULL), '{}')
FROM (
    SELECT compared.adopted_id, compared.stored_id,
        compared.differs OR lag(compared.differs, 1, false) OVER by_start OR lead(compared.differs, 1, false) OVER by_start AS is_near
    FROM (
        SELECT major_iov, minor_iov, adopted.id AS adopted_id, iov.id AS stored_id, (
            adopted.payload_url, adopted.checksum, adopted.size, adopted.major_iov_end, adopted.minor_iov_end, adopted.extra
        ) IS DISTINCT FROM (
            iov.payload_url, iov.checksum, iov.size, iov.major_iov_end, iov.minor_iov_end, iov.extra
        ) OR adopted.id IS NULL OR iov.id IS NULL AS differs
        FROM (SELECT * FROM cdb_adopted WHERE list_id = %(source_list_id)s AND attached) AS adopted
        FULL JOIN (SELECT * FROM "PayloadIOV" WHERE payload_list_id = %(list_id)s) AS iov USING (major_iov, minor_iov)
    ) AS compared
    WINDOW by_start AS (ORDER BY compared.major_iov, compared.minor_iov)
) AS near
WHERE near.is_near


-- name: adopted_rows
-- The rows of cdb_adopted that stay attached to a payload list, by start. Parameters: source_list_id bigint; ids bigint[]: of these.
SELECT id, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
FROM cdb_adopted
WHERE list_id = %(source_list_id)s AND attached AND id = ANY(%(ids)s)
ORDER BY major_iov, minor_iov


-- name: take_over_times
-- Give the rows of a payload list the times that they have in cdb_adopted. Parameters: source_list_id, list_id bigint.
UPDATE "PayloadIOV" AS iov SET created = adopted.created, updated = adopted.updated
FROM cdb_adopted AS adopted
WHERE iov.payload_list_id = %(list_id)s AND adopted.list_id = %(source_list_id)s AND adopted.attached
    AND iov.major_iov = adopted.major_iov AND iov.minor_iov = adopted.minor_iov
    AND (iov.created, iov.updated) IS DISTINCT FROM (adopted.created, adopted.updated)


-- name: update_detached_rows
-- Make the detached IOVs that came from the source those of cdb_adopted, and leave there the ones that are to be inserted.
-- Parameters: first_own_id bigint: they have smaller ids; kept_tags text[]: IOVs that were detached from these global tags stay.
WITH deleted AS (
    DELETE FROM "PayloadIOV" AS iov
    WHERE iov.payload_list_id IS NULL AND iov.id < %(first_own_id)s AND iov.creator IS NULL
        AND coalesce(iov.left_tag <> ALL(%(kept_tags)s), true)
        AND NOT EXISTS (SELECT FROM cdb_adopted AS adopted WHERE adopted.id = iov.id)
),
changed AS (
    UPDATE "PayloadIOV" AS iov
    SET payload_url = adopted.payload_url, checksum = adopted.checksum, size = adopted.size, major_iov = adopted.major_iov,
        minor_iov = adopted.minor_iov, major_iov_end = adopted.major_iov_end, minor_iov_end = adopted.minor_iov_end,
        extra = adopted.extra, updated = adopted.updated
    FROM cdb_adopted AS adopted
    WHERE iov.id = adopted.id AND iov.payload_list_id IS NULL AND (
        iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end, iov.extra
    ) IS DISTINCT FROM (
        adopted.payload_url, adopted.checksum, adopted.size, adopted.major_iov, adopted.minor_iov, adopted.major_iov_end,
        adopted.minor_iov_end, adopted.extra
    )
)
DELETE FROM cdb_adopted AS adopted USING "PayloadIOV" AS iov WHERE iov.id = adopted.id


-- name: own_hashes
-- For each payload list of this database the number of its rows and the hash as in `source_summary`. Parameters: list_ids bigint[].
-- Placeholder: {hash}.
SELECT list.id, count(iov.comb_iov), coalesce(sum({hash}) FILTER (WHERE iov.comb_iov IS NOT NULL), 0)::text
FROM "PayloadList" AS list
LEFT JOIN LATERAL cdb_iovs_of(list.rows_list_id, list.rows_version, 0, 'Infinity') AS iov ON true
WHERE list.id = ANY(%(list_ids)s)
GROUP BY list.id


-- name: own_answer
-- The rows of a lookup as JSON. Parameters: tag text, major, minor bigint, inclusive boolean: whether ends are inclusive.
SELECT cdb_lookup(%(tag)s, %(major)s, %(minor)s, false, %(inclusive)s, false)


-- name: random_start
-- The interval of a random row of a global tag. Parameters: tag_id bigint.
SELECT iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end
FROM (
    SELECT rows_list_id, rows_version, floor(random() * iov_count)::bigint AS number
    FROM "PayloadList"
    WHERE global_tag_id = %(tag_id)s AND iov_count > 0
    ORDER BY random()
    LIMIT 1
) AS list
CROSS JOIN LATERAL (
    SELECT found.* FROM cdb_iovs_of(list.rows_list_id, list.rows_version, 0, 'Infinity') AS found
    OFFSET list.number
    LIMIT 1
) AS iov


-- name: begin_own_ids_above
-- Make this database give its new objects ids above a number. Parameters: greatest bigint.
SELECT setval(sequence, greatest(nextval(sequence), %(greatest)s))
FROM (
    SELECT pg_get_serial_sequence(format('%%I', name), 'id')::regclass AS sequence
    FROM unnest(ARRAY['GlobalTag', 'PayloadType', 'PayloadList', 'PayloadIOV']) AS name
) AS own


-- name: lock_adoption
-- Whether this session has got the lock of adoptions. No parameters.
SELECT pg_try_advisory_lock(3237998081)
