-- The payload types of the import file in byte order: name, number of rows, number of the first row, and the maximum size
-- in bytes of a change log entry with all of its rows. No parameters.
-- A row needs its texts, the name of its payload list, which is the type's name and a few characters, and at most 310 bytes
-- for these characters and the rest.
SELECT payload_type, count(*), min(number),
    sum(310 + octet_length(payload_type) + octet_length(payload_url) + octet_length(checksum))::bigint
FROM cdb_import
GROUP BY payload_type
ORDER BY payload_type COLLATE "C"
