-- Lanes and devices: their keys, queues and counters. Counters equal the lists after every `save`.

-- A lane's keys end with `suffix`, its fields in a device's hash begin with `field`.
local function lane_of(name)
  if name == 'main' then
    return { name = name, suffix = '', field = '' }
  end
  return { name = name, suffix = ':' .. name, field = name .. '.' }
end

-- The limits of a device that has any; few devices do, so most cost no read.
local function read_limits(d)
  local f = call('HMGET', d.meta, 'weight', 'paused', 'min_running', 'max_running', 'rate',
    'tokens', 'tokens_at', 'site')
  local function limit(stored)
    local value = num(stored)
    return value and value > 0 and value <= 2 ^ 53 and value or nil
  end
  d.weight, d.paused = limit(f[1]) or 1, f[2] == '1'
  d.min_running, d.max_running, d.rate = limit(f[3]), limit(f[4]), limit(f[5])
  d.tokens_at = num(f[7])
  d.tokens = d.tokens_at and num(f[6])
  d.limited = d.min_running or d.max_running or d.rate
  d.site, d.site_is_set = f[8] or d.site, f[8]
end

-- What a device has pending in a lane, counted anew: its queue and its delayed tasks; nil when
-- there are too many of these to look at.
local function count_anew(mac, L)
  if call('ZCARD', DELAYED) > 10000 then
    return nil
  end
  local pending = call('LLEN', QUEUE .. mac .. L.suffix)
  for _, id in ipairs(call('ZRANGE', DELAYED, 0, 9999)) do
    local f = redis.pcall('HMGET', TASK .. id, 'mac', 'lane')
    if f[1] == mac and f[2] == L.name then
      pending = pending + 1
    end
  end
  return pending
end

-- Count a device anew whose counts are none: another program wrote there.
local function count_device(d)
  local whole = d.whole
  whole.total, whole.leased = 0, 0
  for name in string.gmatch(C.lanes, '[^,]+') do
    local L, leased = lane_of(name), 0
    for _, id in ipairs(call('ZRANGE', INFLIGHT .. L.suffix, 0, 9999)) do
      local mac = redis.pcall('HMGET', TASK .. id, 'mac')[1]
      leased = leased + (mac == d.mac and 1 or 0)
    end
    local pending = count_anew(d.mac, L) or call('LLEN', QUEUE .. d.mac .. L.suffix)
    whole.total, whole.leased = whole.total + pending, whole.leased + leased
    if name == d.lane.name then
      d.pending, d.leased = pending, leased
    end
  end
  d.is_counted, d.is_recounted = true, true
end

-- The only place that builds a device's keys. `whole` is what a device's lanes share: a script that
-- meets a device in two lanes hands the first one's to the second. With `learns`, a task type, what
-- the device has learnt of it is read along.
local function device(mac, L, whole, learns)
  local meta, own = META .. mac, L.field
  local f = call('HMGET', meta, 'pending_count', 'oldest_created_at', 'leased', 'configured',
    'at_site', 'full', own .. 'pending_count', own .. 'oldest_created_at', own .. 'turn',
    own .. 'served_at', own .. 'leased', own .. 'tag', own .. 'used_ms',
    (learns or '') .. '.run_ms')
  local oldest = num(f[8])
  local d = {
    mac = mac, lane = L, meta = meta,
    queue = QUEUE .. mac .. L.suffix, turn_id = L.name .. '|' .. mac,
    whole = whole or { total = count(f[1]), oldest = num(f[2]), leased = count(f[3]),
      full = f[6] },
    weight = 1, site = f[5] or 'default',
    pending = count(f[7]), oldest = oldest, oldest_before = oldest,
    turn = num(f[9]) or 0, served = num(f[10]) or 0,
    leased = count(f[11]), held = num(f[12]), stale = f[8] and not oldest,
    used_ms = num(f[13]), run_ms = num(f[14]),
  }
  if not (d.pending and d.leased and d.whole.total and d.whole.leased) then
    count_device(d)
  end
  if f[4] then
    read_limits(d)
  end
  return d
end

local function active_key(d)
  return ACTIVE .. d.mac .. d.lane.suffix
end

local function created_at(id)
  return id and num(redis.pcall('HMGET', TASK .. id, 'created_at')[1])
end

local function older(a, b)
  return a and b and math.min(a, b) or a or b
end

-- Put a task into its device's queue: `next` is the end served next, else the end of arrivals.
-- Returns the queue's length; 1 means that the device had no queue and may need a seat.
local function push(d, id, created, next)
  d.oldest, d.has_queue = older(d.oldest, created), true
  return call(next and C.order == 'fifo' and 'LPUSH' or 'RPUSH', d.queue, id)
end

-- Take a task out of its device's queue: an end is O(1), the middle an LREM that the caller bounds.
-- False when it is not there: its record names another device than the one that has it.
local function unqueue(d, id, created)
  d.has_queue = nil
  if call('LINDEX', d.queue, 0) == id then
    call('LPOP', d.queue)
  elseif call('LINDEX', d.queue, -1) == id then
    call('RPOP', d.queue)
  elseif call('LREM', d.queue, 1, id) == 0 then
    return false
  end
  d.stale = d.stale or created == d.oldest
  return true
end

-- The lane's oldest task left the queue: find the next one, and with it the device's. A queue is in
-- order of arrival, but for tasks that came back, in any order, to the end served next; these are
-- looked through, up to 64. Under `lifo` later arrivals stand among them, and the head counts too.
local function refresh_oldest(d)
  local lifo, left = C.order == 'lifo', nil
  for at = 0, 63 do
    local id = call('LINDEX', d.queue, lifo and -1 - at or at)
    if at == 0 then
      d.has_queue = id and true
    end
    -- What stands there may be no record.
    local f = id and redis.pcall('HMGET', TASK .. id, 'created_at', 'attempt')
    left = older(left, f and num(f[1]))
    if not id or not (lifo or f[2]) then
      break
    end
  end
  if lifo then
    left = older(left, created_at(call('LINDEX', d.queue, 0)))
  end
  if d.whole.oldest == d.oldest then
    d.whole.oldest = nil
    local lanes = d.whole.total == d.pending and '' or C.lanes
    for name in string.gmatch(lanes, '[^,]+') do
      if name ~= d.lane.name then
        local field = lane_of(name).field .. 'oldest_created_at'
        d.whole.oldest = older(d.whole.oldest, num(call('HGET', d.meta, field)))
      end
    end
  end
  d.oldest, d.stale = left, nil
end

-- `n` leases of a device began, or ended (below 0). The next `save` writes the device's own count.
local function count_leases(d, n)
  d.leased, d.whole.leased = math.max(0, d.leased + n), math.max(0, d.whole.leased + n)
  d.is_counted = true
  local suffix = d.lane.suffix .. (d.site == 'default' and '' or '@' .. d.site)
  local round = d.lane.round
  if round then
    round.leases[suffix] = (round.leases[suffix] or 0) + n
    return
  end
  local left = add_to(VIRTUAL .. suffix, 'leased', n)
  if left < 0 then
    -- Another program changed whose the task was.
    call('HSET', VIRTUAL .. suffix, 'leased', 0)
  end
  if left == 0 and d.site ~= 'default' and C.policy == 'aging' then
    -- Under `fair` a site's keys go when nobody of it can go either.
    call('UNLINK', VIRTUAL .. suffix, FINISH .. suffix)
  end
end

-- Pending tasks of a site came or went; `default` is what the others leave of all.
local function count_site(site, delta)
  if site ~= 'default' and delta ~= 0 then
    if add_to(SITES_PENDING, ':all', delta) == 0 then
      call('HDEL', SITES_PENDING, ':all')
    end
    if add_to(SITES_PENDING, site, delta) == 0 then
      call('HDEL', SITES_PENDING, site, 'full:' .. site)
    end
  end
end

-- The pending tasks that came or went, where others look for them: in all, per lane, site and
-- device.
local function count_pending(d, delta)
  local total, limit = d.whole.total, C.max_per_mac_pending
  local round = d.lane.round
  if round then
    round.pending = round.pending + delta
  else
    add_to(GLOBAL_PENDING, nil, delta)
    add_to(VIRTUAL .. d.lane.suffix, 'pending', delta)
  end
  count_site(d.site, delta)
  if total > limit then
    call('SADD', OVERLOADED, d.mac)
  elseif total - delta > limit then
    call('SREM', OVERLOADED, d.mac)
  end
  if total == delta then
    call('ZADD', MACS, now, d.mac)
  elseif total == 0 then
    call('ZREM', MACS, d.mac)
  end
end

-- Forget what a device's hash said of tasks that it no longer has.
local function forget(d)
  local own, whole, gone = d.lane.field, d.whole, {}
  if d.pending == 0 then
    gone = { own .. 'pending_count', own .. 'oldest_created_at', own .. 'turn', own .. 'served_at',
      own .. 'used_ms' }
  end
  if d.leased == 0 then
    gone[#gone + 1], gone[#gone + 2] = own .. 'leased', own .. 'tag'
  end
  if whole.leased == 0 then
    gone[#gone + 1] = 'leased'
  end
  if whole.total == 0 then
    for _, field in ipairs({ 'pending_count', 'oldest_created_at', 'updated_at', 'full' }) do
      gone[#gone + 1] = field
    end
    if whole.leased == 0 then
      gone[#gone + 1] = 'at_site'
      for task_type in string.gmatch(C.types, '[^,]+') do
        gone[#gone + 1] = task_type .. '.run_ms'
      end
    end
  end
  if #gone > 0 then
    call('HDEL', d.meta, unpack(gone))
  end
end

-- Write what changed of a device: `delta` tasks came or went. Counters equal the lists after it.
local function save(d, delta)
  local own, whole = d.lane.field, d.whole
  if d.stale then
    refresh_oldest(d)
  end
  whole.oldest = older(whole.oldest, d.oldest)
  -- A task that its changed record calls this device's was never counted here.
  delta = math.max(delta, -d.pending)
  whole.total, d.pending = whole.total + delta, d.pending + delta
  if delta ~= 0 then
    count_pending(d, delta)
  end
  if d.pending == 0 or (d.leased == 0 and d.is_counted) then
    forget(d)
  end
  local set = {}
  if whole.total > 0 then
    set = { 'pending_count', whole.total, 'updated_at', now }
  end
  if d.pending > 0 then
    local at = #set
    set[at + 1], set[at + 2] = own .. 'pending_count', d.pending
    if d.served == now then
      set[at + 3], set[at + 4], set[at + 5], set[at + 6] = own .. 'turn', d.turn,
        own .. 'served_at', now
    end
  end
  if d.is_counted and whole.leased > 0 then
    local at = #set
    set[at + 1], set[at + 2] = 'leased', whole.leased
    if d.leased > 0 then
      set[at + 3], set[at + 4] = own .. 'leased', d.leased
    end
  end
  for field, mean in pairs(d.learnt or {}) do
    set[#set + 1], set[#set + 2] = field, mean
  end
  if d.oldest ~= d.oldest_before and whole.total > 0 then
    local at = #set
    set[at + 1], set[at + 2] = 'oldest_created_at', whole.oldest or ''
    if d.pending > 0 then
      set[at + 3], set[at + 4] = own .. 'oldest_created_at', d.oldest or ''
    end
  end
  if #set > 0 then
    call('HSET', d.meta, unpack(set))
  end
end
