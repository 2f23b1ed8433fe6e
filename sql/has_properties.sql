-- Whether the migration that records properties of the database has been applied. No parameters.
SELECT to_regclass('"DatabaseProperty"') IS NOT NULL
