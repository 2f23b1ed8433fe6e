-- Whether the migration that records properties of the database has been applied.
SELECT to_regclass('"DatabaseProperty"') IS NOT NULL
