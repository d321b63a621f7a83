SELECT seq, step, n FROM entries WHERE tenant = :tenant AND task = :task AND step = :step AND n = :n
