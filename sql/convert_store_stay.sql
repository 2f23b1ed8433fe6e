-- Store a stay of a payload list. Parameters: stay integer, name text, list_id bigint or null, first bigint, last bigint or null,
-- came_empty boolean: the columns, which convert_tables.sql describes.
INSERT INTO cdb_logged_stay (stay, name, list_id, first, last, came_empty)
VALUES (%(stay)s, %(name)s, %(list_id)s, %(first)s, %(last)s, %(came_empty)s)
