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
call_off(device(f[2], lane_of(f[3])), id, f)
return 1
