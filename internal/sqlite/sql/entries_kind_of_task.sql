SELECT * FROM entries
WHERE tenant = :tenant AND task = :task AND kind = :kind
	AND (step, n) > (:after_step, :after_n) AND (step, n) < (:before_step, :before_n)
