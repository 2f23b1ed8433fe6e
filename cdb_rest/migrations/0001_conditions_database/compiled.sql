-- The lookups of compiled tags. cdb_rest/compiled/ describes them.

-- The identity of the database: a compiled tag is used only with the database from which it was made. The system and the
-- timeline change when a server is created, when a standby is promoted, and when a backup is restored at a point in time. Null on
-- a standby.
CREATE FUNCTION cdb_database_identity() RETURNS text
LANGUAGE sql VOLATILE
RETURN CASE WHEN NOT pg_is_in_recovery() THEN
    (SELECT system_identifier FROM pg_control_system())
    || '-' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    || '-' || (SELECT oid FROM pg_database WHERE datname = current_database())
    || '-' || coalesce((SELECT max(id) FROM "Restoration"), 0)
END;

-- Whether a row has not changed since all transactions below `horizon` had ended. Transaction ids have 32 bits and are compared
-- as on a circle, as PostgreSQL does. A row that is more than half a circle older counts as changed.
CREATE FUNCTION cdb_is_older(row_version xid, horizon bigint) RETURNS boolean
LANGUAGE sql STABLE
RETURN ((row_version::text::bigint - horizon) & 4294967295) >= 2147483648;

-- The rows of a lookup's answer for some payload lists: a line for each, with the payload type's name as JSON, a tab and the row.
-- The statement is that of cdb_lookup. Expected plan: for each list an Index Only Scan of payload_iov_lookup, Index Cond alone.
CREATE FUNCTION cdb_rows_of(
    list_ids bigint[], major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean
) RETURNS text
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $function$
DECLARE
    moment CONSTANT numeric := major + minor * 0.0000000000000000001;
BEGIN
    RETURN (
SELECT string_agg(
    to_json(payload_type.name)::text || E'\t' ||
    CASE WHEN as_objects THEN
        json_build_object(
            'payload_type_name', payload_type.name, 'payload_url', iov.payload_url, 'checksum', iov.checksum,
            'size', iov.size, 'major_iov', iov.major_iov, 'minor_iov', iov.minor_iov,
            'major_iov_end', iov.major_iov_end, 'minor_iov_end', iov.minor_iov_end, 'revision', iov.extra
        )
    ELSE
        json_build_array(
            payload_type.name, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov,
            iov.major_iov_end, iov.minor_iov_end, iov.extra
        )
    END::text,
    E'\n'
) FILTER (WHERE
    NOT only_valid
    OR (iov.major_iov_end, iov.minor_iov_end) > (major, minor)
    OR (inclusive AND (iov.major_iov_end, iov.minor_iov_end) = (major, minor))
    OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807)
)
FROM unnest(list_ids) AS chosen (id)
JOIN "PayloadList" AS list ON list.id = chosen.id
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
CROSS JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = chosen.id AND comb_iov <= moment
    ORDER BY comb_iov DESC NULLS LAST
    LIMIT 1
) AS iov
    );
END
$function$;

-- The window of cdb_window, for some payload lists.
CREATE FUNCTION cdb_window_of(
    list_ids bigint[], major bigint, minor bigint, only_valid boolean, inclusive boolean, OUT since numeric, OUT until numeric
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
DECLARE
    moment CONSTANT numeric := major + minor * 0.0000000000000000001;
BEGIN
    SELECT
        max(CASE WHEN edge.over > moment THEN found.start ELSE edge.over END),
        nullif(min(CASE WHEN edge.over > moment THEN edge.over ELSE upcoming.start END), 'Infinity')
    INTO since, until
    FROM unnest(list_ids) AS list (id)
    LEFT JOIN LATERAL (
        SELECT iov.comb_iov AS start,
            CASE
                WHEN NOT only_valid OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807)
                    THEN 'Infinity'
                ELSE iov.major_iov_end + (iov.minor_iov_end + inclusive::int::numeric) * 0.0000000000000000001
            END AS over
        FROM "PayloadIOV" AS iov
        WHERE iov.payload_list_id = list.id AND iov.comb_iov <= moment
            AND (NOT only_valid OR inclusive OR (iov.major_iov_end, iov.minor_iov_end) > (iov.major_iov, iov.minor_iov)
                OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807))
        ORDER BY iov.comb_iov DESC NULLS LAST
        LIMIT 1
    ) AS found ON true
    LEFT JOIN LATERAL (
        SELECT iov.comb_iov AS start
        FROM "PayloadIOV" AS iov
        WHERE iov.payload_list_id = list.id AND iov.comb_iov > found.start
        ORDER BY iov.comb_iov NULLS FIRST
        LIMIT 1
    ) AS following ON true
    CROSS JOIN LATERAL (SELECT least(found.over, following.start) AS over) AS edge
    LEFT JOIN LATERAL (
        SELECT iov.comb_iov AS start
        FROM "PayloadIOV" AS iov
        WHERE iov.payload_list_id = list.id AND iov.comb_iov > moment
            AND (NOT only_valid OR inclusive OR (iov.major_iov_end, iov.minor_iov_end) > (iov.major_iov, iov.minor_iov)
                OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807))
        ORDER BY iov.comb_iov NULLS FIRST
        LIMIT 1
    ) AS upcoming ON true;
END
$function$;

-- The function that answers a lookup for a client that has a compiled state of the tag, in one round trip; otherwise as
-- cdb_answer. compiled_*: the database, the tag's id, the tag's version, revision and the time of that revision (null if it is not in
-- the log) when it was compiled, and the number of lists; horizon: all transactions below had ended then; young_lists,
-- young_versions: the lists whose rows had been written by later transactions, and these transactions.
-- scope says what the answer is: 'compiled': the tag has not changed since, and nothing was read; 'changed': the answer consists of
-- the rows that changed lists have (cdb_rows_of), and the window is that of these lists; 'all': the answer is the whole one. It is
-- null if the client's answer still holds, and if there is no such tag. changed are the ids of the changed lists, and unchanged
-- those of the others: null if the tag has compiled_lists lists, because then the others usually are all other compiled lists.
CREATE FUNCTION cdb_answer_since(
    tag_name text, major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean,
    known text[], known_modified timestamptz, with_window boolean,
    compiled_database text, compiled_tag bigint, compiled_version text, compiled_revision bigint, compiled_at timestamptz,
    horizon bigint, young_lists bigint[], young_versions bigint[], compiled_lists bigint,
    OUT version text, OUT status text, OUT modified timestamptz, OUT scope text, OUT answer text, OUT since numeric,
    OUT until numeric, OUT changed bigint[], OUT unchanged bigint[]
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $function$
DECLARE
    tag_id bigint;
    lists bigint;
BEGIN
    SELECT tag.id, cdb_version(tag.revision, tag.updated, tag.xmin), tag_status.name,
        CASE WHEN tag.last_modified <= now() THEN tag.last_modified END
    INTO tag_id, version, status, modified
    FROM "GlobalTag" AS tag
    JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
    WHERE tag.name = tag_name;
    IF NOT FOUND OR version = ANY(known) OR '*' = ANY(known) OR modified = known_modified THEN
        RETURN;
    END IF;
    IF tag_id = compiled_tag AND compiled_database = cdb_database_identity() THEN
        IF version = compiled_version THEN
            scope := 'compiled';
            RETURN;
        END IF;
        -- The compiled state must be an earlier one of this tag: a database that was copied or set back has other revisions from
        -- then on. And it must not be so old that the comparison of transaction ids fails.
        IF (compiled_at IS NULL OR EXISTS (
            SELECT FROM "GlobalTagChange" AS change
            WHERE change.global_tag = tag_name AND change.revision = compiled_revision AND change.created = compiled_at
        )) AND pg_snapshot_xmax(pg_current_snapshot())::text::bigint - horizon BETWEEN 0 AND 2000000000 THEN
            SELECT count(*), coalesce(array_agg(list.id) FILTER (WHERE NOT list.is_same), '{}') INTO lists, changed
            FROM (
                SELECT list.id,
                    CASE WHEN cdb_is_older(list.xmin, horizon) THEN true
                    ELSE list.xmin::text::bigint IS NOT DISTINCT FROM young_versions[array_position(young_lists, list.id)]
                    END AS is_same
                FROM "PayloadList" AS list
                WHERE list.global_tag_id = tag_id
            ) AS list;
            -- If nearly all lists have changed, the whole answer is cheaper.
            IF cardinality(changed) < 0.9 * lists THEN
                scope := 'changed';
                IF lists <> compiled_lists THEN
                    SELECT array_agg(list.id) INTO unchanged
                    FROM "PayloadList" AS list
                    WHERE list.global_tag_id = tag_id AND list.id <> ALL (changed);
                END IF;
                IF cardinality(changed) > 0 THEN
                    answer := cdb_rows_of(changed, major, minor, only_valid, inclusive, as_objects);
                    IF with_window THEN
                        SELECT answer_window.since, answer_window.until INTO since, until
                        FROM cdb_window_of(changed, major, minor, only_valid, inclusive) AS answer_window;
                    END IF;
                END IF;
                RETURN;
            END IF;
            changed := NULL;
        END IF;
    END IF;
    scope := 'all';
    answer := cdb_lookup(tag_name, major, minor, only_valid, inclusive, as_objects);
    IF with_window THEN
        SELECT answer_window.since, answer_window.until INTO since, until
        FROM cdb_window(tag_name, major, minor, only_valid, inclusive) AS answer_window;
    END IF;
END
$function$;

-- As cdb_answer_since, for a client that knows which lists have changed in a version of the tag: in that version, they need not be
-- found again. The client knows it because cdb_answer_since has told it, in the same database and for the same compiled state.
-- scope 'known': the answer consists of the rows that these lists have, and the window is that of these lists.
CREATE FUNCTION cdb_answer_known(
    tag_name text, major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean,
    known text[], known_modified timestamptz, with_window boolean,
    compiled_database text, compiled_tag bigint, compiled_version text, compiled_revision bigint, compiled_at timestamptz,
    horizon bigint, young_lists bigint[], young_versions bigint[], compiled_lists bigint,
    known_version text, known_changed bigint[],
    OUT version text, OUT status text, OUT modified timestamptz, OUT scope text, OUT answer text, OUT since numeric,
    OUT until numeric, OUT changed bigint[], OUT unchanged bigint[]
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $function$
DECLARE
    tag_id bigint;
BEGIN
    SELECT tag.id, cdb_version(tag.revision, tag.updated, tag.xmin), tag_status.name,
        CASE WHEN tag.last_modified <= now() THEN tag.last_modified END
    INTO tag_id, version, status, modified
    FROM "GlobalTag" AS tag
    JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
    WHERE tag.name = tag_name;
    IF NOT FOUND OR version = ANY(known) OR '*' = ANY(known) OR modified = known_modified THEN
        RETURN;
    END IF;
    IF version = known_version AND tag_id = compiled_tag AND compiled_database = cdb_database_identity() THEN
        scope := 'known';
        answer := cdb_rows_of(known_changed, major, minor, only_valid, inclusive, as_objects);
        IF with_window THEN
            SELECT answer_window.since, answer_window.until INTO since, until
            FROM cdb_window_of(known_changed, major, minor, only_valid, inclusive) AS answer_window;
        END IF;
        RETURN;
    END IF;
    SELECT found.version, found.status, found.modified, found.scope, found.answer, found.since, found.until, found.changed,
        found.unchanged
    INTO version, status, modified, scope, answer, since, until, changed, unchanged
    FROM cdb_answer_since(
        tag_name, major, minor, only_valid, inclusive, as_objects, known, known_modified, with_window, compiled_database,
        compiled_tag, compiled_version, compiled_revision, compiled_at, horizon, young_lists, young_versions, compiled_lists
    ) AS found;
END
$function$;
