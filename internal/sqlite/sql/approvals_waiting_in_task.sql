SELECT * FROM approvals INDEXED BY approvals_waiting
WHERE tenant = :tenant AND task = :task AND state = 'pending' AND seq > :after AND seq < :before
