-- Databases with the tables of nopayloaddb, which cdb_rest/adopt/exporting.py writes. The names of tables, constraints and indexes are
-- those that nopayloaddb's migrations give them. Placeholders: {bigint} and {integer}, columns that generate ids; {column}, the name of
-- the column of an IOV that variant V8 or V9 has, and {value}, its value.


-- name: nopayloaddb_in_the_way
-- A table, view or sequence of the target, and its schema; no row if it has none. Those of extensions do not count. No parameters.
SELECT format('%I.%I', namespace.nspname, class.relname)
FROM pg_class AS class
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname !~ '^(pg_|information_schema$)' AND class.relkind IN ('r', 'p', 'f', 'v', 'm', 'S')
    AND NOT EXISTS (
        SELECT FROM pg_depend AS dependency
        WHERE dependency.classid = 'pg_class'::regclass AND dependency.objid = class.oid AND dependency.deptype = 'e'
    )
ORDER BY class.relkind = 'S', 1
LIMIT 1


-- name: nopayloaddb_begin
-- Settings of the transaction in the target, which waits for this database in the meantime. No parameters.
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL maintenance_work_mem = '128MB'


-- name: nopayloaddb_tables
-- The tables of the target. No parameters. COPY fills them, so the order of the columns is that of the statements below.
-- The row of django_migrations keeps `migrate` of an image, which generates 0001_initial itself, from creating the tables again.
CREATE TABLE "GlobalTagStatus" (
    id {bigint} PRIMARY KEY,
    name varchar(80) NOT NULL UNIQUE,
    description varchar(255),
    created timestamptz NOT NULL
);
CREATE TABLE "GlobalTag" (
    id {bigint} PRIMARY KEY,
    name varchar(80) NOT NULL UNIQUE,
    author varchar(80),
    description varchar(255),
    created timestamptz NOT NULL,
    updated timestamptz NOT NULL,
    status_id bigint NOT NULL
);
CREATE TABLE "PayloadType" (
    id {bigint} PRIMARY KEY,
    name varchar(80) NOT NULL UNIQUE,
    description varchar(255),
    created timestamptz NOT NULL
);
CREATE TABLE "PayloadListIdSequence" (id {bigint} PRIMARY KEY);
CREATE TABLE "PayloadList" (
    id bigint PRIMARY KEY,
    name varchar(255) NOT NULL UNIQUE,
    description varchar(255),
    created timestamptz NOT NULL,
    updated timestamptz NOT NULL,
    global_tag_id bigint,
    payload_type_id bigint NOT NULL
);
CREATE TABLE "PayloadIOV" (
    id {bigint} NOT NULL,
    payload_url varchar(255) NOT NULL,
    checksum varchar(255) NOT NULL,
    size bigint,
    major_iov bigint NOT NULL,
    minor_iov bigint NOT NULL,
    major_iov_end bigint NOT NULL,
    minor_iov_end bigint NOT NULL,
    {column} varchar(255),
    created timestamptz NOT NULL,
    updated timestamptz NOT NULL,
    comb_iov numeric(38,19),
    payload_list_id bigint
);
CREATE TABLE django_migrations (
    id {integer} PRIMARY KEY,
    app varchar(255) NOT NULL,
    name varchar(255) NOT NULL,
    applied timestamptz NOT NULL
);
INSERT INTO django_migrations (app, name, applied) VALUES ('cdb_rest', '0001_initial', now())


-- name: nopayloaddb_indexes
-- The other constraints and the indexes of the target, after its rows. No parameters.
ALTER TABLE "PayloadIOV" ADD CONSTRAINT "PayloadIOV_pkey" PRIMARY KEY (id);
CREATE INDEX covering_idx ON "PayloadIOV" (payload_list_id, comb_iov DESC NULLS LAST);
CREATE INDEX "PayloadIOV_payload_list_id_37321d74" ON "PayloadIOV" (payload_list_id);
CREATE INDEX "PayloadList_global_tag_id_2b35c85f" ON "PayloadList" (global_tag_id);
CREATE INDEX "PayloadList_payload_type_id_7d588918" ON "PayloadList" (payload_type_id);
CREATE INDEX "GlobalTag_status_id_7b5018a3" ON "GlobalTag" (status_id);
CREATE INDEX "GlobalTagStatus_name_890d06f6_like" ON "GlobalTagStatus" (name varchar_pattern_ops);
CREATE INDEX "GlobalTag_name_e1570679_like" ON "GlobalTag" (name varchar_pattern_ops);
CREATE INDEX "PayloadList_name_63ddb548_like" ON "PayloadList" (name varchar_pattern_ops);
CREATE INDEX "PayloadType_name_3fbebe58_like" ON "PayloadType" (name varchar_pattern_ops);
ALTER TABLE "GlobalTag" ADD CONSTRAINT "GlobalTag_status_id_7b5018a3_fk_GlobalTagStatus_id"
    FOREIGN KEY (status_id) REFERENCES "GlobalTagStatus" (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "PayloadList" ADD CONSTRAINT "PayloadList_global_tag_id_2b35c85f_fk_GlobalTag_id"
    FOREIGN KEY (global_tag_id) REFERENCES "GlobalTag" (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "PayloadList" ADD CONSTRAINT "PayloadList_payload_type_id_7d588918_fk_PayloadType_id"
    FOREIGN KEY (payload_type_id) REFERENCES "PayloadType" (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "PayloadIOV" ADD CONSTRAINT "PayloadIOV_payload_list_id_37321d74_fk_PayloadList_id"
    FOREIGN KEY (payload_list_id) REFERENCES "PayloadList" (id) DEFERRABLE INITIALLY DEFERRED


-- name: nopayloaddb_ids
-- Make the target give new objects free ids. No parameters.
-- A new list gets the next id of "PayloadListIdSequence" and the name <type>_<id>, so that name must be free, too: a list may have a
-- name with another number than its id.
INSERT INTO "PayloadListIdSequence" (id) SELECT id FROM "PayloadList" ORDER BY id;
SELECT setval(pg_get_serial_sequence('"PayloadListIdSequence"', 'id'), max(greatest(list.id, numbered.id)))
FROM "PayloadList" AS list
JOIN "PayloadType" AS type ON type.id = list.payload_type_id
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN starts_with(list.name, type.name || '_') AND substr(list.name, length(type.name) + 2) ~ '^[0-9]{1,18}$'
            THEN substr(list.name, length(type.name) + 2)::bigint
    END
) AS numbered (id);
SELECT setval(pg_get_serial_sequence('"GlobalTagStatus"', 'id'), max(id)) FROM "GlobalTagStatus";
SELECT setval(pg_get_serial_sequence('"GlobalTag"', 'id'), max(id)) FROM "GlobalTag";
SELECT setval(pg_get_serial_sequence('"PayloadType"', 'id'), max(id)) FROM "PayloadType";
SELECT setval(pg_get_serial_sequence('"PayloadIOV"', 'id'), max(id)) FROM "PayloadIOV";
ANALYZE "GlobalTagStatus", "GlobalTag", "PayloadType", "PayloadListIdSequence", "PayloadList", "PayloadIOV"


-- name: copy_for_nopayloaddb
-- Send rows for a table of the target. Placeholder: {rows}, one of the statements below. Parameters: those of that statement.
COPY (
{rows}
) TO STDOUT


-- name: copy_into_nopayloaddb
-- Store the rows of a table of the target. Placeholder: {table}. No parameters.
-- FREEZE spares the target a later VACUUM of all rows. The table must have been created in the same transaction.
COPY "{table}" FROM STDIN WITH (FREEZE)


-- name: statuses_for_nopayloaddb
-- All statuses, so that a tag can get any of them. nopayloaddb writes NULL, where this database has ''. Parameters: none is used.
SELECT id, name, nullif(description, ''), created FROM "GlobalTagStatus" ORDER BY id


-- name: tags_for_nopayloaddb
-- The global tags. nopayloaddb cannot clone a tag with the author ''. Parameters: tag_ids bigint[] (null: all).
SELECT id, name, nullif(author, ''), nullif(description, ''), created, updated, status_id
FROM "GlobalTag"
WHERE %(tag_ids)s::bigint[] IS NULL OR id = ANY(%(tag_ids)s::bigint[])
ORDER BY id


-- name: types_for_nopayloaddb
-- The payload types, of some tags only those of their lists. Parameters: tag_ids bigint[] (null: all).
SELECT id, name, nullif(description, ''), created
FROM "PayloadType"
WHERE %(tag_ids)s::bigint[] IS NULL
    OR id IN (SELECT payload_type_id FROM "PayloadList" WHERE global_tag_id = ANY(%(tag_ids)s::bigint[]))
ORDER BY id


-- name: lists_for_nopayloaddb
-- The payload lists, of some tags or all, also those without a tag. Parameters: tag_ids bigint[] (null: all).
SELECT id, name, nullif(description, ''), created, updated, global_tag_id, payload_type_id
FROM "PayloadList"
WHERE %(tag_ids)s::bigint[] IS NULL OR global_tag_id = ANY(%(tag_ids)s::bigint[])
ORDER BY id


-- name: iovs_for_nopayloaddb
-- The IOVs of some tags, or all, also those without a list. Parameters: tag_ids bigint[] (null: all).
-- Lists that share the rows of another list get copies with ids above all others.
SELECT iov.id, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    {value} AS value, iov.created, iov.updated, iov.comb_iov, iov.payload_list_id
FROM "PayloadIOV" AS iov
WHERE %(tag_ids)s::bigint[] IS NULL
    OR iov.payload_list_id IN (SELECT id FROM "PayloadList" WHERE global_tag_id = ANY(%(tag_ids)s::bigint[]))
UNION ALL
SELECT greatest.id + row_number() OVER (), iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, {value}, iov.created, iov.updated, iov.comb_iov, iov.payload_list_id
FROM (SELECT max(id) AS id FROM "PayloadIOV") AS greatest
CROSS JOIN "PayloadList" AS list
JOIN "ListedPayloadIOV" AS iov ON iov.payload_list_id = list.id
WHERE list.base_list_id IS NOT NULL
    AND (%(tag_ids)s::bigint[] IS NULL OR list.global_tag_id = ANY(%(tag_ids)s::bigint[]))


-- name: count_for_nopayloaddb
-- The number of IOVs that will be written, as the lists have counted them. Parameters: tag_ids bigint[] (null: all).
SELECT (
    SELECT coalesce(sum(iov_count), 0) FROM "PayloadList"
    WHERE %(tag_ids)s::bigint[] IS NULL OR global_tag_id = ANY(%(tag_ids)s::bigint[])
) + (SELECT count(*) FROM "PayloadIOV" WHERE payload_list_id IS NULL AND %(tag_ids)s::bigint[] IS NULL)


-- name: count_revisions_for_nopayloaddb
-- The number of IOVs that have a revision. Placeholder: {rows}, the statement `iovs_for_nopayloaddb`. Its parameters.
SELECT count(value) FROM (
{rows}
) AS iov
