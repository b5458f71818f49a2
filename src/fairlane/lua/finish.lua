-- End a running task as done, with its result.
--
-- Returns  1, or 0 when this attempt had ended it already
-- Errors   TASK_NOT_FOUND, TASK_ENDED (otherwise over), STALE_ATTEMPT (not the running attempt)
-- Twice    answers 0 and changes nothing: the first result stands
-- Flags    allow-oom
local id, attempt, result = ARGV[2], ARGV[3], ARGV[4]

local f = call('HMGET', TASK .. id, 'state', 'attempt', 'mac', 'lane', 'started_at')
if f[1] == 'done' and f[2] == attempt then
  return 0
end
local refused = not_current(id, f[1], f[2], attempt) or not_running(id, f[1], attempt)
if refused then
  return refused
end
local L = lane_of(f[4])
call('ZREM', L.inflight, id)
learn_service(L, now - tonumber(f[5]))
conclude(id, 'running', 'done', f[3], L.name, attempt, 'result', result)
wake(L)
return 1
