SELECT * FROM tasks WHERE tenant = :tenant AND id > :after AND id < :before
