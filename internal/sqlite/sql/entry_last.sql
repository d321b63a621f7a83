SELECT * FROM entries WHERE tenant = :tenant AND kind = :kind ORDER BY seq DESC LIMIT 1
