SELECT hashes FROM tree WHERE leaf = :leaf
