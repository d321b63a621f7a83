SELECT 1 FROM records WHERE tenant = :tenant AND task = :task AND tool = :tool AND target = :target
