-- Send the rows of differences.sql, which replace {rows}, to the client as JSON objects, one per line.
-- Parameters: those of the rows. The CSV format is that of export_jsonl.sql.
COPY (
SELECT '{"payload_type":' || to_json(found.payload_type) || ',"since":' || cdb_moment_json(found.since)
    || ',"until":' || cdb_end_json(found.until, %(inclusive)s)
    || ',"a":' || CASE WHEN found.a[1] IS NULL THEN 'null' ELSE json_build_object(
        'payload_url', found.a[2], 'checksum', found.a[3], 'size', found.a[4]::bigint, 'revision', found.a[5])::text END
    || ',"b":' || CASE WHEN found.b[1] IS NULL THEN 'null' ELSE json_build_object(
        'payload_url', found.b[2], 'checksum', found.b[3], 'size', found.b[4]::bigint, 'revision', found.b[5])::text END
    || '}'
FROM (
{rows}
) AS found
) TO STDOUT WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')
