SELECT * FROM operations INDEXED BY operations_open
WHERE tenant = :tenant AND state IN ('started', 'unknown') AND state IN (SELECT value FROM json_each(:states))
ORDER BY task, step, key, actor
