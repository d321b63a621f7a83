SELECT * FROM entries INDEXED BY entries_kind
WHERE tenant = :tenant AND kind = :kind AND seq > :after AND seq < :before
