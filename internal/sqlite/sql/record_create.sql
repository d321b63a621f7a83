INSERT INTO records (tenant, task, tool, target, value, sealed)
VALUES (:tenant, :task, :tool, :target, :value, :sealed)
