-- Lookups from compiled lists. cdb_rest/compiled/ describes them.
DROP FUNCTION cdb_answer_known, cdb_answer_since, cdb_is_older;

-- The identity of the database: a compiled list is used only with the database from which it was made. The system and the timeline
-- change when a server is created, when a standby is promoted, and when a backup is restored at a point in time. The time of the last
-- restoration tells apart two restorations of the same backup. Null on a standby.
CREATE OR REPLACE FUNCTION cdb_database_identity() RETURNS text
LANGUAGE sql VOLATILE
RETURN CASE WHEN NOT pg_is_in_recovery() THEN
    (SELECT system_identifier FROM pg_control_system())
    || '-' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    || '-' || (SELECT oid FROM pg_database WHERE datname = current_database())
    || '-' || coalesce(
        (SELECT id || '-' || extract(epoch FROM created) FROM "Restoration" ORDER BY id DESC LIMIT 1),
        '0'
    )
END;

-- The function that answers a lookup for a client that knows which payload lists the tag had in one state, in one round trip.
-- state_*: the database, the tag's id and its version in that state; missing: the lists of which the client does not have the rows.
-- scope says what the answer is: 'known': the tag is still in that state, and the answer consists of the rows that the missing lists
-- have (cdb_rows_of), and the window is that of these lists; 'all': the answer is the whole one, as that of cdb_answer. It is null if
-- the client's answer still holds, and if there is no such tag.
CREATE FUNCTION cdb_answer_compiled(
    tag_name text, major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean,
    known text[], known_modified timestamptz, with_window boolean,
    state_database text, state_tag bigint, state_version text, missing bigint[],
    OUT version text, OUT status text, OUT modified timestamptz, OUT scope text, OUT answer text, OUT since numeric,
    OUT until numeric
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
    IF version = state_version AND tag_id = state_tag AND state_database = cdb_database_identity() THEN
        scope := 'known';
        IF cardinality(missing) > 0 THEN
            answer := cdb_rows_of(missing, major, minor, only_valid, inclusive, as_objects);
            IF with_window THEN
                SELECT answer_window.since, answer_window.until INTO since, until
                FROM cdb_window_of(missing, major, minor, only_valid, inclusive) AS answer_window;
            END IF;
        END IF;
        RETURN;
    END IF;
    scope := 'all';
    answer := cdb_lookup(tag_name, major, minor, only_valid, inclusive, as_objects);
    IF with_window THEN
        SELECT answer_window.since, answer_window.until INTO since, until
        FROM cdb_window(tag_name, major, minor, only_valid, inclusive) AS answer_window;
    END IF;
END
$function$;
