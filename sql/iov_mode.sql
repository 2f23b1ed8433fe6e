-- The mode in which the ends of the stored intervals are written; no row if none was recorded.
SELECT value FROM "DatabaseProperty" WHERE name = 'iov_mode'
