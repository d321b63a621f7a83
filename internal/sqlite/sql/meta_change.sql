UPDATE meta SET value = :value WHERE name = :name
