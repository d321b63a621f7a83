INSERT INTO tree (leaf, hashes) VALUES (:leaf, :hashes)
