-- The line of the file on which a row ends, as COPY counts them: a quoted text may go over some lines, and the header is the first.
-- Parameters: number bigint.
SELECT 1 + count(*) + sum(char_length(texts) - char_length(replace(texts, E'\n', '')))
FROM (
    SELECT payload_type || payload_url || checksum AS texts FROM cdb_import WHERE number <= %(number)s
) AS earlier
