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
