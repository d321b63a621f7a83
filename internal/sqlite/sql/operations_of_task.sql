SELECT * FROM operations WHERE tenant = :tenant AND task = :task ORDER BY step, key, actor
