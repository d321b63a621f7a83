SELECT * FROM entries
WHERE tenant = :tenant AND task = :task AND (step, n) > (:after_step, :after_n)
ORDER BY step, n
