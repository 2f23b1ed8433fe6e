-- Create a temporary table for the rows of an import file, as text. No parameters.
-- The names of the constraints are the error messages for invalid values. All columns are text, because a conversion to the
-- final types would accept values that the API rejects. Reading a large file takes long, so there is no statement timeout.
SET LOCAL statement_timeout = 0;
CREATE TEMPORARY TABLE cdb_import_file (
    number bigint GENERATED ALWAYS AS IDENTITY,
    payload_type text NOT NULL CONSTRAINT "payload_type is empty" CHECK (payload_type <> '')
        CONSTRAINT "payload_type has more than 80 characters" CHECK (char_length(payload_type) <= 80),
    payload_url text NOT NULL CONSTRAINT "payload_url is empty" CHECK (payload_url <> '')
        CONSTRAINT "payload_url has more than 255 characters" CHECK (char_length(payload_url) <= 255),
    checksum text NOT NULL CONSTRAINT "checksum has more than 255 characters" CHECK (char_length(checksum) <= 255),
    size text NOT NULL CONSTRAINT "size is no number from 0 to 9223372036854775807"
        CHECK (CASE WHEN size ~ '^[0-9]{1,19}$' THEN size::numeric <= 9223372036854775807 ELSE false END),
    major_iov text NOT NULL CONSTRAINT "major_iov is no number from 0 to 9223372036854775807"
        CHECK (CASE WHEN major_iov ~ '^[0-9]{1,19}$' THEN major_iov::numeric <= 9223372036854775807 ELSE false END),
    minor_iov text NOT NULL CONSTRAINT "minor_iov is no number from 0 to 9223372036854775807"
        CHECK (CASE WHEN minor_iov ~ '^[0-9]{1,19}$' THEN minor_iov::numeric <= 9223372036854775807 ELSE false END),
    major_iov_end text NOT NULL CONSTRAINT "major_iov_end is no number from 0 to 9223372036854775807"
        CHECK (CASE WHEN major_iov_end ~ '^[0-9]{1,19}$' THEN major_iov_end::numeric <= 9223372036854775807 ELSE false END),
    minor_iov_end text NOT NULL CONSTRAINT "minor_iov_end is no number from 0 to 9223372036854775807"
        CHECK (CASE WHEN minor_iov_end ~ '^[0-9]{1,19}$' THEN minor_iov_end::numeric <= 9223372036854775807 ELSE false END),
    revision text CONSTRAINT "revision is no number from 0 to 9223372036854775807"
        CHECK (CASE WHEN revision ~ '^[0-9]{1,19}$' THEN revision::numeric <= 9223372036854775807 ELSE revision IS NULL END)
) ON COMMIT DROP
