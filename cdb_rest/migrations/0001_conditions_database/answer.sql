-- The function that answers a lookup together with what caches need, from one state of the database in one round trip.
-- known: versions of the tag whose answer the client has, or * for any; known_modified: the time of last modification that it
-- has. If one of them still holds, the answer stays null and no list is looked at. All is null if there is no such tag.
-- modified is null within the second in which the tag was changed: another change may follow in it.
-- since and until are only looked for with_window.
CREATE FUNCTION cdb_answer(
    tag_name text, major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean,
    known text[], known_modified timestamptz, with_window boolean,
    OUT version text, OUT status text, OUT modified timestamptz, OUT answer text, OUT since numeric, OUT until numeric
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $function$
BEGIN
    SELECT cdb_version(tag.revision, tag.updated, tag.xmin), tag_status.name,
        CASE WHEN tag.last_modified <= now() THEN tag.last_modified END
    INTO version, status, modified
    FROM "GlobalTag" AS tag
    JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
    WHERE tag.name = tag_name;
    IF NOT FOUND OR version = ANY(known) OR '*' = ANY(known) OR modified = known_modified THEN
        RETURN;
    END IF;
    answer := cdb_lookup(tag_name, major, minor, only_valid, inclusive, as_objects);
    IF with_window THEN
        SELECT answer_window.since, answer_window.until INTO since, until
        FROM cdb_window(tag_name, major, minor, only_valid, inclusive) AS answer_window;
    END IF;
END
$function$;
