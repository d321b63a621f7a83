SELECT * FROM entries INDEXED BY entries_task_kind
WHERE tenant = :tenant AND task = :task AND kind = :kind AND seq > :after AND seq < :before
ORDER BY seq
