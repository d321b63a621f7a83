SELECT * FROM approvals WHERE tenant = :tenant AND id = :id
