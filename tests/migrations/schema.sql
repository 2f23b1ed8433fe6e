-- Everything that migrations define in a database, one row for each object: its kind, its name, and its definition as
-- PostgreSQL writes it. Whether a column may be null is told by the column, so constraints of that kind are left out; some
-- versions of PostgreSQL do not have them.
WITH relation AS (
    SELECT pg_class.*, pg_class.oid::regclass::text AS identity
    FROM pg_class
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname <> 'information_schema' AND nspname NOT LIKE 'pg\_%'
)
SELECT 'table' AS kind, identity AS name,
    concat_ws(' ', relkind, relpersistence, relrowsecurity, relreplident, reloptions, pg_get_viewdef(oid)) AS definition
FROM relation
WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
UNION ALL
SELECT 'column', identity || '.' || quote_ident(attname),
    concat_ws(
        ' ', rank() OVER (PARTITION BY attrelid ORDER BY attnum), format_type(atttypid, atttypmod),
        CASE WHEN attnotnull THEN 'not null' END, CASE WHEN attcollation <> 0 THEN attcollation::regcollation END,
        'identity=' || nullif(attidentity::text, ''), 'generated=' || nullif(attgenerated::text, ''), attstorage, attcompression
    )
FROM relation
JOIN pg_attribute ON attrelid = relation.oid AND attnum > 0 AND NOT attisdropped
WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
UNION ALL
SELECT 'default', identity || '.' || quote_ident(attname), pg_get_expr(adbin, adrelid)
FROM relation
JOIN pg_attrdef ON adrelid = relation.oid
JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
UNION ALL
SELECT 'constraint', identity || ' ' || quote_ident(conname), pg_get_constraintdef(pg_constraint.oid)
FROM relation
JOIN pg_constraint ON conrelid = relation.oid
WHERE contype NOT IN ('n', 't')
UNION ALL
SELECT 'index', identity, concat_ws(' ', pg_get_indexdef(oid), indisvalid, indisclustered, indisreplident)
FROM relation
JOIN pg_index ON indexrelid = oid
UNION ALL
SELECT 'trigger', identity || ' ' || quote_ident(tgname), concat_ws(' ', pg_get_triggerdef(pg_trigger.oid), tgenabled)
FROM relation
JOIN pg_trigger ON tgrelid = relation.oid
WHERE NOT tgisinternal
UNION ALL
SELECT 'function', pg_proc.oid::regprocedure::text, pg_get_functiondef(pg_proc.oid)
FROM pg_proc
JOIN pg_namespace ON pg_namespace.oid = pronamespace
WHERE nspname <> 'information_schema' AND nspname NOT LIKE 'pg\_%' AND prokind <> 'a'
UNION ALL
SELECT 'sequence', identity,
    concat_ws(
        ' ', format_type(seqtypid, NULL), seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle,
        refobjid::regclass::text || ' ' || refobjsubid
    )
FROM relation
JOIN pg_sequence ON seqrelid = oid
LEFT JOIN pg_depend ON objid = oid AND classid = 'pg_class'::regclass AND deptype IN ('a', 'i')
    AND refclassid = 'pg_class'::regclass
ORDER BY kind, name
