-- Revisions after a failover. A standby that is promoted may lack changes, of which clients have seen the revisions.

-- The history of changes to which the server adds: it differs after the promotion of a standby, after a recovery to a point in time, and
-- in another cluster. pg_control_checkpoint() has the new timeline only after a checkpoint. Null on a standby.
CREATE FUNCTION cdb_timeline() RETURNS text
LANGUAGE sql VOLATILE
RETURN CASE WHEN NOT pg_is_in_recovery() THEN
    (SELECT system_identifier FROM pg_control_system()) || '-' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
END;

-- A revision that no change can have had, whatever was lost: milliseconds since 1970, because no tag changes a thousand times per
-- second; and, should the clock be behind, far beyond all that is known. The random part tells apart two standbys that are promoted
-- from the same state.
CREATE FUNCTION cdb_new_floor() RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $function$
BEGIN
    RETURN greatest(
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
        greatest((SELECT max(first_revision) FROM "Restoration"), (SELECT max(revision) FROM "GlobalTag"))
            + 1000000 + (random() * 1000000)::bigint
    );
END
$function$;

-- The least revision that a change may have. The first change on a new timeline stores a new one.
-- It waits for no other transaction: its caller has locks, so that both could wait for each other. A transaction that does not get the
-- advisory lock, because another one stores the new floor and has not committed, takes a floor of its own.
CREATE FUNCTION cdb_revision_floor() RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $function$
DECLARE
    here CONSTANT text := cdb_timeline();
    newest text;
    floor bigint;
BEGIN
    SELECT (array_agg(timeline ORDER BY id DESC))[1], max(first_revision) INTO newest, floor FROM "Restoration";
    IF newest = here THEN
        RETURN floor;
    END IF;
    -- An empty table knows of no earlier timeline.
    floor := CASE WHEN floor IS NULL THEN 1 ELSE cdb_new_floor() END;
    IF pg_try_advisory_xact_lock(3237998082) THEN
        -- A new statement sees what another transaction has committed since.
        SELECT (array_agg(timeline ORDER BY id DESC))[1], greatest(max(first_revision), floor) INTO newest, floor FROM "Restoration";
        IF newest IS DISTINCT FROM here THEN
            INSERT INTO "Restoration" (first_revision, retired_names, comment, timeline)
            VALUES (floor, '[]', 'The database server has another timeline: changes may have been lost.', here);
        END IF;
    END IF;
    RETURN floor;
END
$function$;
