SELECT count(*) AS pending FROM approvals INDEXED BY approvals_waiting
WHERE tenant = :tenant AND task = :task AND state = 'pending'
