SELECT * FROM tasks WHERE tenant = :tenant AND id = :id
