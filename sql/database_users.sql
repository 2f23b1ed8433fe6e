-- The names of the programs that use a database of this server; null if there is none. Parameters: name text.
SELECT string_agg(DISTINCT application_name, ', ')
FROM pg_stat_activity
WHERE datname = %(name)s AND backend_type = 'client backend' AND pid <> pg_backend_pid()
