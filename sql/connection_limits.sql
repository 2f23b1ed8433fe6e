-- How many connections the server takes in all, how many of them it keeps for administrators, and how many this role and this
-- database may have (-1: as many as there are). `reserved_connections` is known from PostgreSQL 16 on.
SELECT current_setting('max_connections')::integer,
       current_setting('superuser_reserved_connections')::integer
           + coalesce(current_setting('reserved_connections', TRUE)::integer, 0),
       (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user),
       (SELECT datconnlimit FROM pg_database WHERE datname = current_database()),
       pg_backend_pid()
