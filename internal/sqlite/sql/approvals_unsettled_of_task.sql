SELECT * FROM approvals INDEXED BY approvals_open
WHERE tenant = :tenant AND task = :task AND state IN ('pending', 'approved') AND state IN (SELECT value FROM json_each(:states))
ORDER BY seq
