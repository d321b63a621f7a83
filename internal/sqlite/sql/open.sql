-- The signs spare a plan at every call, as in approval_latest.sql.
SELECT * FROM operations INDEXED BY operations_open
WHERE tenant = +:tenant AND task = +:task AND state IN ('started', 'unknown')
ORDER BY step
