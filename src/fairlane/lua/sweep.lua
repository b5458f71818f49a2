-- Take back what ended on its own: lost leases, backoffs, delays, dead turns and workers.
--
-- At most `limit` of these in all. A lease lost before its start costs the task nothing; a
-- lost start counts as a failure, and past max_attempts the task is dead with cause worker_lost.
--
-- Returns  {lost "id.attempt"…, dead ids…, backoffs ended and devices with a new token, delays
--          ended, turns ended, workers gone, receipts of idempotency keys that are over}
-- Errors   none
-- Twice    takes back the next ones, or none
-- Flags    allow-oom
local left = tonumber(ARGV[2])

local lost, dead, backoffs, delays = {}, {}, 0, 0
for name in string.gmatch(C.lanes, '[^,]+') do
  local L = lane_of(name)
  local due = call('ZRANGE', INFLIGHT .. L.suffix, '-inf', now, 'BYSCORE', 'LIMIT', 0, left,
    'WITHSCORES')
  left = left - #due / 2
  for at = 1, #due, 2 do
    local id = due[at]
    local f = redis.pcall('HMGET', TASK .. id, 'state', 'attempt', 'mac', 'failures', 'misses',
      'created_at', 'expires_at', 'worker', 'paid', 'started_at', 'lane', 'claimed_at', 'defers')
    local is_usable = f[2] and f[11] == name and not is_flawed(f, f[3], f[11], f[6], f[7])
    local d = f[3] and device(f[3], L)
    if is_usable and f[1] == 'leased' then
      lost[#lost + 1] = id .. '.' .. f[2]
      -- It was charged, and will not be charged again; one that expires now never ran.
      local expires = now > num(f[7])
      end_lease(d, id, expires and num(f[9]), 0)
      give_back(d, id, 'leased', num(f[6]), num(f[7]), 1, 'misses',
        (num(f[5]) or 0) + 1)
      make_room(d)
    elseif is_usable and f[1] == 'running' and num(f[10]) then
      local failures = (num(f[4]) or 0) + 1
      lost[#lost + 1] = id .. '.' .. f[2]
      -- It pays until its last heartbeat.
      local used = math.max(1, due[at + 1] - C.lease_ms - num(f[10])) * UNITS_PER_MS
      end_lease(d, id, num(f[9]), used)
      count_times(L, f[6], f[12], f[10], f[10] + used / UNITS_PER_MS, not (f[4] or f[13]),
        failures >= C.max_attempts)
      call('HSET', TASK .. id, 'failures', failures, 'cause', 'worker_lost')
      call('HDEL', TASK .. id, 'paid')
      if failures >= C.max_attempts then
        dead[#dead + 1] = id
        save(d, 0)
        bury(d, id, 'running', 'worker_lost', 'no heartbeat from ' .. (f[8] or ''))
      else
        give_back(d, id, 'running', num(f[6]), num(f[7]), 1)
      end
      make_room(d)
    elseif f[1] ~= 'leased' and f[1] ~= 'running' and is_state(f[1]) then
      call('ZREM', INFLIGHT .. L.suffix, id)
    elseif d then
      end_lease(d, id, num(f[9]), 0)
      save(d, 0)
      quarantine(d, id, 'leased', 'its record lacks a field')
      make_room(d)
    else
      call('ZREM', INFLIGHT .. L.suffix, id)
      quarantine(nobody(L), id, 'leased', 'its record lacks a field')
    end
  end
end
for name in string.gmatch(C.lanes, '[^,]+') do
  local ended, back, admitted = resume(lane_of(name), left)
  backoffs, delays = backoffs + ended + admitted, delays + back
  left = left - ended - back - admitted
end
if #lost > 0 then
  add_to(TOTALS, 'lost_leases', #lost)
  emit('lease_lost', '', '', table.concat(lost, ' '))
end

local turns = call('ZRANGE', TURNS, '-inf', now, 'BYSCORE', 'LIMIT', 0, left)
left = left - #turns
for _, turn_id in ipairs(turns) do
  local name, mac = string.match(turn_id, '^([^|]+)|(.+)$')
  end_turn(device(mac, lane_of(name)))
end

local gone = call('ZRANGE', WORKERS, '-inf', now, 'BYSCORE', 'LIMIT', 0, left)
for _, worker in ipairs(gone) do
  call('ZREM', WORKERS, worker)
  call('DEL', WORKER .. worker)
  emit('worker_gone', '', '', '', worker)
end
if #gone > 0 then
  count_slots()
end
mend_receipts()
return { lost, dead, backoffs, delays, #turns, gone, reap_receipts(left - #gone) }
