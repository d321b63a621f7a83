SELECT * FROM approvals INDEXED BY approvals_task
WHERE tenant = :tenant AND task = :task AND state IN (SELECT value FROM json_each(:states))
ORDER BY seq
