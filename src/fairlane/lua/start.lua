-- Begin to run a leased task; only its current attempt may, once.
--
-- Returns  {task_type, mac, created_at, payload, lease deadline, and its traceparent if it has one}
-- Errors   TASK_NOT_FOUND, TASK_ENDED (it is over), STALE_ATTEMPT (not the current attempt, or
--          another run has started it)
-- Twice    the same `run_id` gets the same answer; another one STALE_ATTEMPT
-- Flags    allow-oom
local id, attempt, worker, run_id = ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local f = call('HMGET', TASK .. id, 'state', 'attempt', 'run_id', 'task_type', 'mac', 'lane',
  'created_at', 'payload', 'misses', 'trace')
local refused = not_current(id, f[1], f[2], attempt)
if refused then
  return refused
elseif f[1] ~= 'leased' and not (f[1] == 'running' and f[3] == run_id) then
  return fail('STALE_ATTEMPT', 'task_id: attempt ' .. attempt .. ' of ' .. id .. ' is ' .. f[1])
end
if not (f[4] and f[5] and f[6] and is_lane(f[6]) and num(f[7])) then
  -- The sweep sets it aside when its lease has passed.
  return not_found(id)
end
local deadline = now + C.lease_ms
call('ZADD', INFLIGHT .. lane_of(f[6]).suffix, 'XX', deadline, id)
if f[1] == 'leased' then
  move(id, 'leased', 'running', 'worker', worker, 'run_id', run_id, 'started_at', now)
  if f[9] then
    call('HDEL', TASK .. id, 'misses')
  end
  emit('started', f[5], f[6], id .. '.' .. attempt, worker)
end
return { f[4], f[5], num(f[7]), f[8], deadline, f[10] or nil }
