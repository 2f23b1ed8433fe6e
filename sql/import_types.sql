-- The payload types of the import file in byte order: name, number of rows, number of the first row. No parameters.
SELECT payload_type, count(*), min(number)
FROM cdb_import
GROUP BY payload_type
ORDER BY payload_type COLLATE "C"
