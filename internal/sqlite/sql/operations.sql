SELECT * FROM operations
WHERE tenant = :tenant AND state IN (SELECT value FROM json_each(:states))
ORDER BY task, step, key, actor
