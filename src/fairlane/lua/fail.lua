-- Record that a running task's attempt failed: it is retried, failed or dead.
--
-- `final` ends the task as failed; else it waits with backoff and runs again, and past
-- max_attempts it is dead, with `cause`, the error and its whole payload.
--
-- Returns  {state, due time or 0}, also when this attempt had failed already
-- Errors   TASK_NOT_FOUND, TASK_ENDED (otherwise over), STALE_ATTEMPT (not the running attempt)
-- Twice    answers the state of the first run and changes nothing
-- Flags    allow-oom
local id, attempt, cause, detail, final = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6] == '1'

local f = call('HMGET', TASK .. id, 'state', 'attempt', 'mac', 'lane', 'failures', 'created_at',
  'expires_at', 'failed_attempt', 'due_at', 'paid', 'started_at', 'claimed_at', 'defers')
if f[8] == attempt and f[2] == attempt then
  -- What failed for good may have been deferred before; nothing is due of it.
  return { f[1], f[1] ~= 'failed' and num(f[9]) or 0 }
end
local refused = not_current(id, f[1], f[2], attempt) or not_running(id, f[1], attempt)
if refused then
  return refused
end
local d, failures = device(f[3], lane_of(f[4])), (num(f[5]) or 0) + 1
end_lease(d, id, num(f[10]), used_since(f[11]))
count_times(d.lane, f[6], f[12], f[11], now, not (f[5] or f[13]),
  final or failures >= C.max_attempts)
call('HSET', TASK .. id, 'failures', failures, 'failed_attempt', attempt)
if final then
  save(d, 0)
  conclude(id, 'running', 'failed', d.mac, d.lane.name, cause, 'cause', cause, 'error', detail)
  make_room(d)
  return { 'failed', 0 }
elseif failures >= C.max_attempts then
  save(d, 0)
  bury(d, id, 'running', cause, detail)
  make_room(d)
  return { 'dead', 0 }
end
local due = now + spread_ms(id,
  backoff_ms(failures, C.retry_backoff_base_ms, C.defer_backoff_max_ms))
delay(d, id, 'running', due, expiry(f[7]), 'error', detail, 'cause', cause)
make_room(d)
return { 'delayed', due }
