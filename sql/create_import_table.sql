-- A table for the rows of a file that is imported, gone with the transaction. Reading a file may take as long as it takes.
-- `line` is the line of the file, the header being the first; the names of the checks are what their violation is reported as.
SET LOCAL statement_timeout = 0;
CREATE TEMPORARY TABLE cdb_import (
    line bigint GENERATED ALWAYS AS IDENTITY (START WITH 2),
    payload_type varchar(80) NOT NULL CONSTRAINT "payload_type is empty" CHECK (payload_type <> ''),
    payload_url varchar(255) NOT NULL CONSTRAINT "payload_url is empty" CHECK (payload_url <> ''),
    checksum varchar(255) NOT NULL,
    size bigint NOT NULL,
    major_iov bigint NOT NULL,
    minor_iov bigint NOT NULL,
    major_iov_end bigint NOT NULL,
    minor_iov_end bigint NOT NULL,
    revision varchar(19) CONSTRAINT "revision is no number from 0 to 9223372036854775807"
        CHECK (CASE WHEN revision ~ '^[0-9]+$' THEN revision::numeric <= 9223372036854775807 ELSE revision IS NULL END),
    comb_iov numeric(38, 19) GENERATED ALWAYS AS (major_iov + minor_iov * 0.0000000000000000001) STORED,
    CONSTRAINT "moments and sizes must not be negative"
        CHECK (least(size, major_iov, minor_iov, major_iov_end, minor_iov_end) >= 0)
) ON COMMIT DROP
