-- The function that answers a lookup in one round trip; null if there is no such tag.
-- Its statement is sql/lookup.sql, put in at {lookup}. PL/pgSQL keeps the plan for the life of the database connection,
-- also behind a pooler that hands connections from client to client.
-- The settings hold for the function alone: one plan for all moments, and that plan by index even if it was made while
-- the tables were small or not analysed yet, because it outlives their growth. Compiling it would cost more than running it.
CREATE OR REPLACE FUNCTION cdb_lookup(
    tag_name text, major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean
) RETURNS text
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
DECLARE
    tag_id bigint;
    moment CONSTANT numeric := major + minor * 0.0000000000000000001;
BEGIN
    SELECT id INTO tag_id FROM "GlobalTag" WHERE name = tag_name;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN (
{lookup}
    );
END
$function$
