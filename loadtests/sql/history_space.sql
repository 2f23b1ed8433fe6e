-- The space that live IOVs and history take in tables and indexes, by the headings of the report. No parameters.
SELECT
    live AS "live IOVs",
    pg_total_relation_size('"PayloadIOV"')::float / nullif(live, 0) AS "bytes of table and indexes / live IOV",
    pg_relation_size('payload_iov_lookup')::float / nullif(live, 0) AS "bytes of the lookup's index / live IOV",
    superseded AS "superseded IOVs",
    areas - superseded AS "lost parts of areas",
    pg_total_relation_size('"PayloadIOVHistory"')::float / nullif(areas, 0) AS "bytes / row of the history"
FROM
    (SELECT sum(iov_count)::bigint AS live FROM "PayloadList") AS lists,
    (SELECT count(*) AS areas, count(iov_id) AS superseded FROM "PayloadIOVHistory") AS history;
