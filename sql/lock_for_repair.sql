-- Lock the tables against all writers, including those that only lock rows. Readers are not blocked. No parameters.
LOCK TABLE "GlobalTag", "PayloadList", "PayloadIOV" IN EXCLUSIVE MODE
