SELECT * FROM operations
WHERE tenant = :tenant AND task = :task AND state IN (SELECT value FROM json_each(:states))
ORDER BY step, key, actor
