SELECT * FROM entries
WHERE tenant = :tenant AND task = :task AND (step, n) > (:step, :n)
ORDER BY step, n
