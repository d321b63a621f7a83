SELECT * FROM approvals INDEXED BY approvals_task
WHERE tenant = :tenant AND task = :task AND seq > :after AND seq < :before
