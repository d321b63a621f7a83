SELECT count(*) AS pending FROM approvals WHERE tenant = :tenant AND state = 'pending' AND task = :task
