-- Give up a running task whose data cannot be read: it is dead with cause corrupt.
--
-- Returns  1, or 0 when this attempt was given up already
-- Errors   TASK_NOT_FOUND, TASK_ENDED (otherwise over), STALE_ATTEMPT (not the running attempt)
-- Twice    answers 0 and changes nothing
-- Flags    allow-oom
local id, attempt, detail = ARGV[2], ARGV[3], ARGV[4]

local f = call('HMGET', TASK .. id, 'state', 'attempt', 'mac', 'lane', 'paid', 'started_at',
  'cause')
if f[1] == 'dead' and f[2] == attempt and f[7] == 'corrupt' then
  return 0
end
local refused = not_current(id, f[1], f[2], attempt) or not_running(id, f[1], attempt)
if refused then
  return refused
end
local d = device(f[3], lane_of(f[4]))
end_lease(d, id, num(f[5]), used_since(f[6]))
save(d, 0)
add_to(TOTALS, 'corrupt', 1)
bury(d, id, 'running', 'corrupt', detail)
make_room(d)
return 1
