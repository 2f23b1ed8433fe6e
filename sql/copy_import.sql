-- Copy the rows of an import file from the client. The file has the columns of an export and a header line. No parameters.
COPY cdb_import_file (
    payload_type, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, revision
) FROM STDIN WITH (FORMAT csv, HEADER MATCH, FORCE_NOT_NULL (checksum), FORCE_NULL (revision))
