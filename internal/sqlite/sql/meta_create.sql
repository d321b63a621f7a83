INSERT INTO meta (name, value) VALUES (:name, :value)
