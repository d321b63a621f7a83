SELECT * FROM tasks WHERE tenant = :tenant ORDER BY id
