-- Take back what ended on its own: lost leases, backoffs, delays, dead turns and workers.
--
-- At most `limit` of each kind and lane. A lease lost before its start costs the task nothing; a
-- lost start counts as a failure, and past max_attempts the task is dead with cause worker_lost.
--
-- Returns  {lost "id.attempt"…, dead ids…, backoffs ended, delays ended, turns ended, workers gone}
-- Errors   none
-- Twice    takes back the next ones, or none
-- Flags    allow-oom
local limit = tonumber(ARGV[2])

local lost, dead, backoffs, delays = {}, {}, 0, 0
for name in string.gmatch(C.lanes, '[^,]+') do
  local L = lane_of(name)
  local due = call('ZRANGE', L.inflight, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
  for _, id in ipairs(due) do
    local f = call('HMGET', TASK .. id, 'state', 'attempt', 'mac', 'failures', 'misses',
      'created_at', 'expires_at', 'worker')
    call('ZREM', L.inflight, id)
    if f[1] == 'leased' then
      lost[#lost + 1] = id .. '.' .. f[2]
      give_back(device(f[3], L), id, 'leased', tonumber(f[6]), tonumber(f[7]), 1, 'misses',
        (tonumber(f[5]) or 0) + 1)
    elseif f[1] == 'running' then
      local failures = (tonumber(f[4]) or 0) + 1
      lost[#lost + 1] = id .. '.' .. f[2]
      call('HSET', TASK .. id, 'failures', failures, 'cause', 'worker_lost')
      if failures >= C.max_attempts then
        dead[#dead + 1] = id
        bury(id, 'running', f[3], name, 'worker_lost', 'no heartbeat from ' .. (f[8] or ''))
      else
        give_back(device(f[3], L), id, 'running', tonumber(f[6]), tonumber(f[7]), 1)
      end
    end
  end
  local ended, back = resume(L, limit)
  backoffs, delays = backoffs + ended, delays + back
end
if #lost > 0 then
  call('HINCRBY', TOTALS, 'lost_leases', #lost)
  emit('lease_lost', '', '', table.concat(lost, ' '))
end

local turns = call('ZRANGE', TURNS, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
for _, turn_id in ipairs(turns) do
  local name, mac = string.match(turn_id, '^([^|]+)|(.+)$')
  end_turn(device(mac, lane_of(name)))
end

local gone = call('ZRANGE', WORKERS, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
for _, worker in ipairs(gone) do
  call('ZREM', WORKERS, worker)
  call('DEL', WORKER .. worker)
  emit('worker_gone', '', '', '', worker)
end
if #gone > 0 then
  count_slots()
end
return { lost, dead, backoffs, delays, #turns, gone }
