SELECT * FROM operations WHERE tenant = :tenant AND id = :id
