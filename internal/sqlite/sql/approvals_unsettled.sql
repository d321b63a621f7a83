SELECT * FROM approvals INDEXED BY approvals_unsettled
WHERE tenant = :tenant AND (state = 'pending' OR state = 'approved') AND state IN (SELECT value FROM json_each(:states))
ORDER BY seq
