-- The mode in which the ends of the stored intervals are written. No row if none is recorded. No parameters.
SELECT value FROM "DatabaseProperty" WHERE name = 'iov_mode'
