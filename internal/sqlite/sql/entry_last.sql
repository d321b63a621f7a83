SELECT * FROM entries INDEXED BY entries_kind WHERE tenant = :tenant AND kind = :kind ORDER BY seq DESC LIMIT 1
