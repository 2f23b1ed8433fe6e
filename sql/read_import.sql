-- Make of the rows of a file, once all of them are there, what they mean: a table of numbers, in which the rows of a payload type
-- are found by start. It is gone with the transaction. `number` is that of the row in the file, 1 being the first after the header.
CREATE TEMPORARY TABLE cdb_import ON COMMIT DROP AS
SELECT number, payload_type, payload_url, checksum, size::bigint, major_iov::bigint, minor_iov::bigint, major_iov_end::bigint,
    minor_iov_end::bigint, revision, major_iov::numeric + minor_iov::numeric * 0.0000000000000000001 AS comb_iov
FROM cdb_import_file;
TRUNCATE cdb_import_file;
CREATE INDEX ON cdb_import (payload_type, comb_iov);
ANALYZE cdb_import
