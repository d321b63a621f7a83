SELECT * FROM operations WHERE tenant = :tenant ORDER BY task, step, key, actor
