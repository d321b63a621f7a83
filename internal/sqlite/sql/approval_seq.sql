SELECT seq FROM approvals WHERE tenant = :tenant AND id = :id
