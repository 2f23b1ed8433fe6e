-- The line of the import file on which a row ends. The header is line 1, and quoted texts may contain newlines.
-- Parameters: number bigint: the number of the row.
SELECT 1 + count(*) + sum(char_length(texts) - char_length(replace(texts, E'\n', '')))
FROM (
    SELECT payload_type || payload_url || checksum AS texts FROM cdb_import WHERE number <= %(number)s
) AS earlier
