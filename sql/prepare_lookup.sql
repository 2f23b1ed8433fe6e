-- Prepare the lookup's statement, put in at {lookup}, as its function does: with numbered parameters.
PREPARE explained_lookup (bigint, bigint, bigint, numeric, boolean, boolean, boolean) AS
{lookup}
