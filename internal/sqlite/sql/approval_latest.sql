SELECT * FROM approvals
WHERE tenant = :tenant AND task = :task AND signature = :signature AND mode = :mode
ORDER BY step DESC, seq DESC
LIMIT 1
