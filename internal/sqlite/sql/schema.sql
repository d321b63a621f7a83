-- Not the text of tables: it depends on the version of SQLite that altered them.
SELECT type, name, CASE WHEN type = 'table' THEN '' ELSE coalesce(sql, '') END AS sql
FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY type, name
