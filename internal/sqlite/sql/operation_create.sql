INSERT INTO operations (tenant, task, actor, key, signature, tool, step, result, sealed)
VALUES (:tenant, :task, :actor, :key, :signature, :tool, :step, :result, :sealed)
