SELECT * FROM operations WHERE tenant = :tenant AND task = :task AND actor = :actor AND key = :key AND dispatch = :dispatch
