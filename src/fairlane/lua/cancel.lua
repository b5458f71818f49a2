-- Cancel a task that has not ended; one that runs only with `force`.
--
-- Returns  1, or 0 when it was cancelled already
-- Errors   TASK_NOT_FOUND, TASK_RUNNING (use force), TASK_ENDED (otherwise over)
-- Twice    answers 0 and changes nothing
-- Flags    allow-oom
local id, force = ARGV[2], ARGV[3] == '1'

local f = call('HMGET', TASK .. id, 'state', 'mac', 'lane', 'created_at', 'paid', 'started_at',
  'claimed_at', 'failures', 'defers')
local state = f[1]
if not state then
  return not_found(id)
elseif state == 'cancelled' then
  return 0
elseif state == 'running' and not force then
  return fail('TASK_RUNNING', 'task_id: ' .. id .. ' runs; cancel it with force')
elseif not may_become(state, 'cancelled') then
  return fail('TASK_ENDED', 'task_id: ' .. id .. ' is ' .. state)
end
local d = device(f[2], lane_of(f[3]))
if state == 'pending' or state == 'delayed' then
  local is_here = true
  if state == 'pending' then
    is_here = unqueue(d, id, num(f[4]))
  else
    call('ZREM', DELAYED, id)
  end
  call('ZREM', DEADLINES, id)
  -- In the queue of another device it still counts, until a claim finds it there.
  save(d, is_here and -1 or 0)
  if seat(d) then
    ring()
  end
else
  end_lease(d, id, num(f[5]), state == 'leased' and 0 or used_since(f[6]))
  if state == 'running' then
    count_times(d.lane, f[4], f[7], f[6], now, not (f[8] or f[9]), false)
  end
  save(d, 0)
  make_room(d)
end
conclude(id, state, 'cancelled', d.mac, d.lane.name, '')
return 1
