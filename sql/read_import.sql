-- Convert the rows of the import file into a temporary table with numbers, indexed by payload type and start. No parameters.
-- `number` is the number of the row in the file; the first row after the header has 1.
CREATE TEMPORARY TABLE cdb_import ON COMMIT DROP AS
SELECT number, payload_type, payload_url, checksum, size::bigint, major_iov::bigint, minor_iov::bigint, major_iov_end::bigint,
    minor_iov_end::bigint, revision, major_iov::numeric + minor_iov::numeric * 0.0000000000000000001 AS comb_iov
FROM cdb_import_file;
TRUNCATE cdb_import_file;
CREATE INDEX ON cdb_import (payload_type, comb_iov);
ANALYZE cdb_import
