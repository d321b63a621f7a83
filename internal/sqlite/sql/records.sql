SELECT * FROM records WHERE tenant = :tenant ORDER BY task, tool, target
