-- Put a leased or running task back to wait, with backoff; past max_defers it is dead.
--
-- With `scope` task the task waits for its own due time and its device's others go on; with
-- `device` it goes to the end of arrivals and the whole device backs off (section 3.4).
--
-- Returns  {state, due time or 0, defers}, also when this attempt was deferred already
-- Errors   TASK_NOT_FOUND, TASK_ENDED (it is over), STALE_ATTEMPT (not the current attempt)
-- Twice    answers the state of the first run and changes nothing
-- Flags    allow-oom
local id, attempt, reason, scope = ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local f = call('HMGET', TASK .. id, 'state', 'attempt', 'mac', 'lane', 'defers', 'created_at',
  'expires_at', 'deferred_attempt', 'due_at', 'paid', 'started_at', 'claimed_at', 'failures')
if f[8] == attempt and f[2] == attempt then
  return { f[1], num(f[9]) or 0, num(f[5]) }
end
local refused = not_current(id, f[1], f[2], attempt)
if refused then
  return refused
elseif f[1] ~= 'leased' and f[1] ~= 'running' then
  return fail('STALE_ATTEMPT', 'task_id: attempt ' .. attempt .. ' of ' .. id .. ' is ' .. f[1])
end
local d, defers = device(f[3], lane_of(f[4])), (num(f[5]) or 0) + 1
end_lease(d, id, num(f[10]), f[1] == 'leased' and 0 or used_since(f[11]))
local L = d.lane
if f[1] == 'running' then
  count_times(L, f[6], f[12], f[11], now, not (f[13] or f[5]), defers > C.max_defers)
end
add_to(TOTALS, 'deferred:' .. L.name, 1)
call('HSET', TASK .. id, 'defers', defers, 'deferred_attempt', attempt)
if defers > C.max_defers then
  save(d, 0)
  bury(d, id, f[1], 'defer_limit', reason)
  make_room(d)
  return { 'dead', 0, defers }
end
local due = now + spread_ms(id, backoff_ms(defers, C.defer_backoff_base_ms, C.defer_backoff_max_ms))
if scope == 'task' then
  delay(d, id, f[1], due, expiry(f[7]), 'error', reason)
else
  call('HDEL', TASK .. id, 'paid')
  move(id, f[1], 'pending', 'due_at', due, 'error', reason)
  push(d, id, num(f[6]), false)
  call('ZADD', DEADLINES, expiry(f[7]), id)
  local backoff = BACKOFF .. L.suffix
  call('ZADD', backoff, 'GT', due, d.mac)
  call('HSET', d.meta, L.field .. 'unschedulable_until', call('ZSCORE', backoff, d.mac))
  save(d, 1)
  seat(d)
  emit('deferred', d.mac, L.name, id, reason)
end
make_room(d)
return { scope == 'task' and 'delayed' or 'pending', due, defers }
