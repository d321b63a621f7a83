SELECT * FROM approvals INDEXED BY approvals_tenant
WHERE tenant = :tenant AND state IN (SELECT value FROM json_each(:states))
ORDER BY seq
