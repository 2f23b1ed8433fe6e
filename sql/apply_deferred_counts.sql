-- Run the deferred triggers that update the counts of global tags now, and immediately for the rest of the transaction,
-- instead of at its commit. No parameters.
SET CONSTRAINTS ALL IMMEDIATE
