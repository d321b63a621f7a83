SELECT (SELECT max(seq) FROM entries) AS entries, (SELECT max(leaf) FROM tree) AS leaf
