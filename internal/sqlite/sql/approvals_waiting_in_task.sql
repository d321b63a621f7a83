SELECT * FROM approvals INDEXED BY approvals_state
WHERE tenant = :tenant AND state = 'pending' AND task = :task AND seq > :after AND seq < :before
