-- End a running task as done, with its result.
--
-- Returns  1, or 0 when this attempt had ended it already
-- Errors   TASK_NOT_FOUND, TASK_ENDED (otherwise over), STALE_ATTEMPT (not the running attempt)
-- Twice    answers 0 and changes nothing: the first result stands
-- Flags    allow-oom
local id, attempt, result = ARGV[2], ARGV[3], ARGV[4]

local f = call('HMGET', TASK .. id, 'state', 'attempt', 'mac', 'lane', 'started_at', 'task_type',
  'paid', 'size', 'created_at', 'claimed_at', 'failures', 'defers')
if f[1] == 'done' and f[2] == attempt then
  return 0
end
local refused = not_current(id, f[1], f[2], attempt) or not_running(id, f[1], attempt)
if refused then
  return refused
end
local d, started = device(f[3], lane_of(f[4]), nil, f[6]), num(f[5]) or now
end_lease(d, id, num(f[7]), used_since(started))
learn(d, f[6], f[8] or 0, math.max(1, now - started))
count_times(d.lane, f[9], f[10], started, now, not (f[11] or f[12]), true)
save(d, 0)
conclude(id, 'running', 'done', d.mac, d.lane.name, attempt, 'result', result)
make_room(d)
return 1
