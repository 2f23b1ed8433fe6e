-- The payload types of the file in byte order, each with the number of its rows, its first row, and how many bytes an entry of the
-- change log has at most that takes them all: 310 a row, its texts, and the name of its list, which is some characters longer.
SELECT payload_type, count(*), min(number),
    sum(310 + octet_length(payload_type) + octet_length(payload_url) + octet_length(checksum))::bigint
FROM cdb_import
GROUP BY payload_type
ORDER BY payload_type COLLATE "C"
