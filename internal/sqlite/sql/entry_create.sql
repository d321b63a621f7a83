INSERT INTO entries (seq, tenant, task, step, n, kind, body)
VALUES (:seq, :tenant, :task, :step, :n, :kind, :body)
