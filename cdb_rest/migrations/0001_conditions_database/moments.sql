-- Combined moments as JSON, for statements that write whole responses.

-- The moment [major, minor] for a combined value that is a moment.
CREATE FUNCTION cdb_moment_json(moment numeric) RETURNS json
LANGUAGE sql IMMUTABLE
RETURN json_build_array(trunc(moment)::bigint, ((moment - trunc(moment)) * 10000000000000000000)::bigint);

-- The end of an interval in the wire format, for the combined value of the first moment after the interval. 2^63 is the end of an
-- open interval.
CREATE FUNCTION cdb_end_json(after numeric, inclusive boolean) RETURNS json
LANGUAGE sql IMMUTABLE
RETURN CASE
    WHEN after >= 9223372036854775808 THEN json_build_array(9223372036854775807, 9223372036854775807)
    WHEN NOT inclusive THEN cdb_moment_json(after)
    WHEN after = trunc(after) THEN json_build_array((after - 1)::bigint, 9223372036854775807)
    ELSE cdb_moment_json(after - 0.0000000000000000001)
END;

-- The combined value of the first moment after an interval, from its end in the wire format. After the last moment of a major comes
-- the first one of the next.
CREATE FUNCTION cdb_end(major_end bigint, minor_end bigint, inclusive boolean) RETURNS numeric
LANGUAGE sql IMMUTABLE
RETURN CASE
    WHEN minor_end = 9223372036854775807 AND (inclusive OR major_end = 9223372036854775807) THEN major_end::numeric + 1
    ELSE major_end + (minor_end::numeric + inclusive::int) * 0.0000000000000000001
END;

-- As a window function: the last value that is not null. The aggregate skips nulls, because its function is strict.
CREATE FUNCTION cdb_second(anycompatible, anycompatible) RETURNS anycompatible
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS 'SELECT $2';
CREATE AGGREGATE cdb_latest(anycompatible) (SFUNC = cdb_second, STYPE = anycompatible);
