SELECT * FROM approvals INDEXED BY approvals_tenant
WHERE tenant = :tenant AND seq > :after AND seq < :before
