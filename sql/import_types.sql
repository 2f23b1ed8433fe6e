-- The payload types of the file in byte order, each with the number of its rows and its first line.
SELECT payload_type, count(*), min(line) FROM cdb_import GROUP BY payload_type ORDER BY payload_type COLLATE "C"
