SELECT bytes FROM contents WHERE digest = :digest
