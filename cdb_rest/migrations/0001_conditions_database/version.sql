-- The function that names one state of a global tag, for caches: its revision, which people can read, and two more parts that
-- tell states apart where revisions could repeat: when it was raised (a database that was restored goes on from an earlier
-- one), and the row's own version (SQL by hand changes counts and raises nothing).
CREATE FUNCTION cdb_version(revision bigint, updated timestamptz, row_version xid) RETURNS text
LANGUAGE sql STABLE
RETURN revision || '-' || to_hex((extract(epoch FROM updated) * 1000000)::bigint) || '-' || row_version;
