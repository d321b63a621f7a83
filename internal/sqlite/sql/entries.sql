SELECT * FROM entries WHERE tenant = :tenant AND seq > :after ORDER BY seq
