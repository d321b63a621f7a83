INSERT INTO entries (tenant, task, step, n, kind, body)
VALUES (:tenant, :task, :step, :n, :kind, :body)
