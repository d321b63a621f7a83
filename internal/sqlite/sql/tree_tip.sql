SELECT (SELECT value FROM meta WHERE name = 'head') AS head, (SELECT max(seq) FROM entries) AS entries, (SELECT max(leaf) FROM tree) AS leaf
