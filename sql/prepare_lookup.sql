-- Prepare the statement of the lookup, which replaces {lookup}, with numbered parameters, as its function does. No parameters.
PREPARE explained_lookup (bigint, bigint, bigint, numeric, boolean, boolean, boolean) AS
{lookup}
