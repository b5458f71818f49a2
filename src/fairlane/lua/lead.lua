-- Take or keep the lead among dispatchers, so that one of them does the work.
--
-- Returns  1 when `holder` leads, else 0
-- Errors   none
-- Twice    keeps the lead
-- Flags    allow-oom
local holder, lease_ms = ARGV[2], ARGV[3]
local leader = call('GET', LEADER)
if leader and leader ~= holder then
  return 0
end
call('SET', LEADER, holder, 'PX', lease_ms)
return 1
