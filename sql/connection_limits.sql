-- The connection limits: maximum of the server, number reserved for administrators, and the limits of this role and of this
-- database (-1: no limit); and the process id of this session. No parameters.
-- `reserved_connections` exists in PostgreSQL 16 and later.
SELECT current_setting('max_connections')::integer,
       current_setting('superuser_reserved_connections')::integer
           + coalesce(current_setting('reserved_connections', TRUE)::integer, 0),
       (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user),
       (SELECT datconnlimit FROM pg_database WHERE datname = current_database()),
       pg_backend_pid()
