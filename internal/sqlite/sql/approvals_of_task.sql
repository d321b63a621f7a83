SELECT * FROM approvals INDEXED BY approvals_state
WHERE tenant = :tenant AND state IN (SELECT value FROM json_each(:states)) AND task = :task
ORDER BY seq
