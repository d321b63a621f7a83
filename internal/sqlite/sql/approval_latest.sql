-- The signs spare a plan at every call: SQLite makes one anew for values that are compared in an ordered query.
SELECT * FROM approvals
WHERE tenant = +:tenant AND task = +:task AND signature = +:signature AND mode = +:mode
ORDER BY step DESC, seq DESC
LIMIT 1
