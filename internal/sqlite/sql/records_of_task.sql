SELECT * FROM records WHERE tenant = :tenant AND task = :task ORDER BY tool, target
