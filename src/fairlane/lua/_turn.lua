-- A task's ways from its queue to a worker, back and out, and a device's turns.

-- Wake the dispatcher; the doorbell never holds more than one.
local function ring()
  if call('LLEN', DOORBELL) == 0 then
    call('RPUSH', DOORBELL, 1)
  end
end

-- A place became free: wake the dispatcher if somebody waits for one, in this lane or in another,
-- for workers may serve several.
local function wake(L)
  if call('ZCARD', WAITING .. L.suffix) > 0 then
    return ring()
  end
  for name in string.gmatch(C.lanes, '[^,]+') do
    if name ~= L.name and call('ZCARD', WAITING .. lane_of(name).suffix) > 0 then
      return ring()
    end
  end
end

-- A lease is not in the lane that its record names, so another program changed that: go on in the
-- lane where it is.
local function find_lane(d, id)
  for name in string.gmatch(C.lanes, '[^,]+') do
    if call('ZREM', INFLIGHT .. lane_of(name).suffix, id) == 1 then
      for field, value in pairs(device(d.mac, lane_of(name))) do
        d[field] = value
      end
      call('HSET', TASK .. id, 'lane', name)
    end
  end
end

-- A lease is over: what it used is settled against what was charged for it, if anything was.
local function end_lease(d, id, paid, used)
  if call('ZREM', INFLIGHT .. d.lane.suffix, id) == 0 then
    find_lane(d, id)
  end
  count_leases(d, -1)
  pay(d, paid and used - paid or 0, paid and used)
end

-- What an attempt has used since it started, at least a millisecond.
local function used_since(started)
  return math.max(1, now - (num(started) or now)) * UNITS_PER_MS
end

-- After a lease is over and saved: let in whom it kept out, and the dispatcher know.
local function make_room(d)
  if d.limited then
    seat_everywhere(d)
  elseif d.order and (d.order.entrants or 0) > 0 then
    -- Somebody waits, and the order goes on.
    return ring()
  end
  if d.leased == 0 then
    step_back(d.lane, d.site)
  end
  wake(d.lane)
end

-- Cancel a task that has not ended: it leaves its queue, its delay or its lease. `f` are its state,
-- mac, lane, created_at, paid, started_at, claimed_at, failures and defers.
local function call_off(d, id, f)
  local state = f[1]
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

local function backoff_ms(n, base, max)
  return math.min(base * 2 ^ math.min(n - 1, 31), max)
end

-- A backoff and up to defer_jitter_percent more, told by the task's id: many that defer at once do
-- not all come back at once.
local function spread_ms(id, ms)
  local part = tonumber(string.sub(redis.sha1hex(id), 1, 8), 16) / 2 ^ 32
  return ms + math.floor(ms * C.defer_jitter_percent / 100 * part)
end

-- When the next backoff, token or delayed task falls due, or 0.
local function next_due(L)
  if L.next_due then
    return L.next_due
  end
  local next
  for _, key in ipairs({ BACKOFF .. L.suffix, THROTTLED .. L.suffix, DELAYED }) do
    next = older(next, tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]))
  end
  return next or 0
end

-- Let in devices of a lane with a new token, end backoffs, and bring back delayed tasks, that are
-- due: up to `limit` in all. Returns the backoffs, the tasks, and the devices with a token.
local function resume(L, limit)
  local throttled, backoff = THROTTLED .. L.suffix, BACKOFF .. L.suffix
  L.next_due = next_due(L)
  if L.next_due == 0 or L.next_due > now then
    return 0, 0, 0
  end
  L.next_due = nil
  local admitted = call('ZRANGE', throttled, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
  for _, mac in ipairs(admitted) do
    call('ZREM', throttled, mac)
    if seat(device(mac, L)) then
      ring()
    end
  end
  limit = limit - #admitted
  local due = call('ZRANGE', backoff, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
  for _, mac in ipairs(due) do
    local d = device(mac, L)
    call('ZREM', backoff, mac)
    call('HDEL', d.meta, L.field .. 'unschedulable_until')
    if seat(d) then
      ring()
    end
  end
  limit = limit - #due
  local tasks = call('ZRANGE', DELAYED, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
  for _, id in ipairs(tasks) do
    local f = redis.pcall('HMGET', TASK .. id, 'mac', 'lane', 'created_at', 'expires_at', 'state')
    local d = type(f[1]) == 'string' and f[2] and device(f[1], lane_of(f[2]))
    call('ZREM', DELAYED, id)
    if d and not is_flawed(f, f[1], f[2], f[3], f[4]) and f[5] == 'delayed' then
      call('ZREM', DEADLINES, id)
      give_back(d, id, 'delayed', num(f[3]), num(f[4]), 0)
    elseif f[5] ~= 'delayed' and is_state(f[5]) then
      note_corrupt(f[1] or '', L, id, 'a delayed id of a task that is ' .. f[5])
    else
      call('ZREM', DEADLINES, id)
      if d then
        save(d, -1)
      end
      quarantine(d or nobody(L), id, 'delayed', 'its record lacks a field')
    end
  end
  return #due, #tasks, #admitted
end

-- Lease up to `n` tasks of a device to `holder`; expired ones end on the way, at most 64 or so. The
-- lane must be in a round.
-- Returns the leased, as (id, attempt, type, mac) and with the payload if asked, the expired ids,
-- what is to be charged (a task that lost its lease was charged the first time), and how many fewer
-- are pending. What is no pending task of the device is set aside.
local function take(d, n, holder, lease_ms, with_payload)
  local L, leased, expired, charged, gone, is_spoilt = d.lane, {}, {}, 0, {}, false
  local fair, round = C.policy == 'fair', L.round
  while #leased < n and #gone < n + 64 do
    local id = call(C.order == 'lifo' and 'RPOP' or 'LPOP', d.queue)
    if not id then
      break
    end
    local f = redis.pcall('HMGET', TASK .. id, 'created_at', 'expires_at', 'attempt', 'misses',
      'paid', 'task_type', 'cost_ms', 'size', 'state', 'mac', 'lane')
    local created, expires = num(f[1]), num(f[2])
    gone[#gone + 1] = id
    d.stale = d.stale or not created or created == d.oldest
    if f[9] ~= 'pending' or f[10] ~= d.mac or f[11] ~= L.name
      or not (created and expires and f[6]) then
      is_spoilt = true
      if set_aside(d, id, f, f[9], f[10], f[11]) then
        round.deadlines[#round.deadlines + 1] = id
      end
    elseif now > expires then
      round.deadlines[#round.deadlines + 1] = id
      conclude(id, 'pending', 'expired', d.mac, L.name, '')
      expired[#expired + 1] = id
    else
      round.deadlines[#round.deadlines + 1] = id
      local attempt = (num(f[3]) or 0) + 1
      -- Two thirds until it is started: what a dead dispatcher leased holds credits of all. The
      -- interval doubles each time that nobody started the task, up to an hour.
      local unstarted_ms = math.floor(lease_ms * 2 / 3)
      local deadline = now + backoff_ms((num(f[4]) or 0) + 1, unstarted_ms, 3600000)
      if fair and not f[5] then
        local cost = estimate(d, round.means, f[6], f[8] or 0, num(f[7]))
        move(id, 'pending', 'leased', 'attempt', attempt, 'claimed_at', now, 'holder', holder,
          'paid', cost)
        charged = charged + cost
      else
        move(id, 'pending', 'leased', 'attempt', attempt, 'claimed_at', now, 'holder', holder)
      end
      round.inflight[#round.inflight + 1], round.inflight[#round.inflight + 2] = deadline, id
      leased[#leased + 1] = { id, attempt, f[6], d.mac,
        with_payload and call('HGET', TASK .. id, 'payload') or '' }
    end
  end
  if #leased > 0 then
    local ids = {}
    for i, task in ipairs(leased) do
      ids[i] = task[1] .. '.' .. task[2]
    end
    emit('claimed', d.mac, L.name, table.concat(ids, ' '), holder)
    count_leases(d, #leased)
    spend_tokens(d, #leased)
  end
  round.taken = round.taken + 1
  d.turn, d.served = round.turns + round.taken, now
  -- An entry that was put there by others was never counted.
  local counted = is_spoilt and count_anew(d.mac, L)
  return leased, expired, charged, counted and d.pending - counted or #gone
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
