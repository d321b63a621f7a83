SELECT * FROM entries WHERE seq > :after ORDER BY seq
