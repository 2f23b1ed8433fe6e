-- Make the transaction that has just begun see one state of the database throughout, and let it change nothing.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY
