INSERT INTO operations (tenant, task, actor, key, signature, tool, step, result)
VALUES (:tenant, :task, :actor, :key, :signature, :tool, :step, :result)
