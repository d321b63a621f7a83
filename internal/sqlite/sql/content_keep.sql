INSERT INTO contents (digest, bytes) VALUES (:digest, :bytes) ON CONFLICT (digest) DO NOTHING
