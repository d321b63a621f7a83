SELECT * FROM approvals INDEXED BY approvals_unsettled
WHERE tenant = :tenant AND state = 'pending' AND seq > :after AND seq < :before
