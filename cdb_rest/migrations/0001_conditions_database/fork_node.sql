-- The node of an area of the past in the binary tree over the versions of a payload list, whose versions are counted from 1
-- there: of the versions from added_in + 1 to removed_in, the one with the most factors of two.
CREATE FUNCTION cdb_fork_node(added_in integer, removed_in integer) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (removed_in >> (32 - position(B'1' IN (added_in # removed_in)::bit(32))))
    << (32 - position(B'1' IN (added_in # removed_in)::bit(32)));
