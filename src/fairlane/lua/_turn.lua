-- A task's ways from its queue to a worker, back and out, and a device's turns.

-- Wake the dispatcher; the doorbell never holds more than one.
local function ring()
  if call('LLEN', DOORBELL) == 0 then
    call('RPUSH', DOORBELL, 1)
  end
end

-- A place became free: wake the dispatcher if somebody waits for one.
local function wake(L)
  if call('ZCARD', L.schedule) > 0 then
    ring()
  end
end

-- A task that waits again in its queue, at the end served next, with its first expiry; past it,
-- it is expired. `delta` is 1 when the task was not counted as pending, else 0.
local function give_back(d, id, from, created, expires, delta, ...)
  if now > expires then
    conclude(id, from, 'expired', d.mac, d.lane.name, '')
    delta = delta - 1
  else
    push(d, id, created, true)
    call('ZADD', DEADLINES, expires, id)
    move(id, from, 'pending', ...)
    emit('returned', d.mac, d.lane.name, id, from)
  end
  save(d, delta)
  if seat(d) then
    ring()
  end
end

-- A task that waits for its own due time; it counts as pending, and its device's others go on.
local function delay(d, id, from, due, expires, ...)
  call('ZADD', DELAYED, due, id)
  call('ZADD', DEADLINES, expires, id)
  call('HDEL', TASK .. id, 'paid')
  move(id, from, 'delayed', 'due_at', due, ...)
  save(d, 1)
  emit('delayed', d.mac, d.lane.name, id, due)
end

-- A task given up, with its cause, error and whole payload; the oldest makes room.
local function bury(id, from, mac, lane, cause, detail)
  conclude(id, from, 'dead', mac, lane, cause, 'cause', cause, 'error', detail, 'dead_at', now)
  call('HDEL', TASK .. id, 'due_at')
  call('LPUSH', DEAD_LETTER, id)
  if call('LLEN', DEAD_LETTER) > C.dead_letter_cap then
    call('DEL', TASK .. call('RPOP', DEAD_LETTER))
    call('HINCRBY', TOTALS, 'dead_dropped', 1)
  end
end

local function backoff_ms(n, base, max)
  return math.min(base * 2 ^ math.min(n - 1, 31), max)
end

-- End up to `limit` backoffs of a lane, and bring back up to `limit` delayed tasks, that are due.
local function resume(L, limit)
  local due = call('ZRANGE', L.backoff, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
  for _, mac in ipairs(due) do
    local d = device(mac, L)
    call('ZREM', L.backoff, mac)
    call('HDEL', d.meta, L.until_)
    if seat(d) then
      ring()
    end
  end
  local tasks = call('ZRANGE', DELAYED, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
  for _, id in ipairs(tasks) do
    local f = call('HMGET', TASK .. id, 'mac', 'lane', 'created_at', 'expires_at')
    call('ZREM', DELAYED, id)
    call('ZREM', DEADLINES, id)
    if f[1] then
      give_back(device(f[1], lane_of(f[2])), id, 'delayed', tonumber(f[3]), tonumber(f[4]), 0)
    end
  end
  return #due, #tasks
end

-- When the next backoff or delayed task falls due, or 0.
local function next_due(L)
  local a = call('ZRANGE', L.backoff, 0, 0, 'WITHSCORES')[2]
  local b = call('ZRANGE', DELAYED, 0, 0, 'WITHSCORES')[2]
  return older(tonumber(a), tonumber(b)) or 0
end

-- Lease up to `n` tasks of a device to `holder`; expired ones end on the way, at most 64 or so.
-- Returns the leased, as (id, attempt, type, mac) and with the payload if asked, the expired ids,
-- what the device is to be charged (a task that lost its lease was charged the first time), and
-- how many left the queue.
local function take(d, n, holder, lease_ms, with_payload)
  local L, leased, expired, charged, gone = d.lane, {}, {}, 0, {}
  while #leased < n and #gone < n + 64 do
    local id = call(C.order == 'lifo' and 'RPOP' or 'LPOP', d.queue)
    if not id then
      break
    end
    local f = call('HMGET', TASK .. id, 'created_at', 'expires_at', 'attempt', 'misses', 'paid',
      'task_type')
    gone[#gone + 1] = id
    d.stale = d.stale or not f[1] or tonumber(f[1]) == d.oldest
    if not f[1] then
      call('HINCRBY', TOTALS, 'corrupt', 1)
      emit('corrupt', d.mac, L.name, id, 'a queued id without a record')
    elseif now > tonumber(f[2]) then
      conclude(id, 'pending', 'expired', d.mac, L.name, '')
      expired[#expired + 1] = id
    else
      local attempt = (tonumber(f[3]) or 0) + 1
      -- The interval doubles each time that nobody started the task, up to an hour.
      local deadline = now + backoff_ms((tonumber(f[4]) or 0) + 1, lease_ms, 3600000)
      local paid = tonumber(f[5]) or price(d)
      move(id, 'pending', 'leased', 'attempt', attempt, 'claimed_at', now, 'holder', holder, 'paid',
        paid)
      call('ZADD', L.inflight, deadline, id)
      charged = charged + (f[5] and 0 or paid)
      leased[#leased + 1] = { id, attempt, f[6], d.mac,
        with_payload and call('HGET', TASK .. id, 'payload') or '' }
    end
  end
  if #gone > 0 then
    call('ZREM', DEADLINES, unpack(gone))
  end
  if #leased > 0 then
    local ids = {}
    for i, task in ipairs(leased) do
      ids[i] = task[1] .. '.' .. task[2]
    end
    emit('claimed', d.mac, L.name, table.concat(ids, ' '), holder)
  end
  d.turn, d.served = call('HINCRBY', L.virtual, 'turns', 1), now
  return leased, expired, charged, #gone
end

-- An error unless the token is that of the device's open two-step turn.
local function turn_lost(d, token)
  if call('GET', active_key(d)) ~= token or not call('ZSCORE', TURNS, d.turn_id) then
    return fail('TURN_LOST', 'token: ' .. token .. ' does not hold ' .. d.mac
      .. '; claim a device anew')
  end
end

local function end_turn(d)
  call('DEL', active_key(d))
  call('ZREM', TURNS, d.turn_id)
  emit('turn_ended', d.mac, d.lane.name, '')
  if seat(d) then
    ring()
  end
end
