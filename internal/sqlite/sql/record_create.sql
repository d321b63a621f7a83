INSERT INTO records (tenant, task, tool, target, value)
VALUES (:tenant, :task, :tool, :target, :value)
