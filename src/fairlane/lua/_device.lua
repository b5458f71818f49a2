-- Lanes and devices: their keys, queues and counters. Counters equal the lists after every `save`.

local function lane_of(name)
  local suffix = name == 'main' and '' or ':' .. name
  local field = name == 'main' and '' or name .. '.'
  return {
    name = name, suffix = suffix,
    schedule = SCHEDULE .. suffix, waiting = WAITING .. suffix, backoff = BACKOFF .. suffix,
    virtual = VIRTUAL .. suffix, finish = FINISH .. suffix, inflight = INFLIGHT .. suffix,
    pending = field .. 'pending_count', oldest = field .. 'oldest_created_at',
    turn = field .. 'turn', served = field .. 'served_at', until_ = field .. 'unschedulable_until',
  }
end

-- The only place that builds a device's keys. `whole` is what a device's lanes share: a script that
-- meets a device in two lanes hands the first one's to the second.
local function device(mac, L, whole)
  local meta = META .. mac
  local f = call('HMGET', meta, 'pending_count', 'oldest_created_at', 'weight', 'paused',
    L.pending, L.oldest, L.turn, L.served)
  local oldest = tonumber(f[6])
  return {
    mac = mac, lane = L, meta = meta,
    queue = QUEUE .. mac .. L.suffix, turn_id = L.name .. '|' .. mac,
    whole = whole or { total = tonumber(f[1]) or 0, oldest = tonumber(f[2]) },
    weight = tonumber(f[3]) or 1, paused = f[4] == '1',
    pending = tonumber(f[5]) or 0, oldest = oldest, oldest_before = oldest,
    turn = tonumber(f[7]) or 0, served = tonumber(f[8]) or 0,
  }
end

local function active_key(d)
  return ACTIVE .. d.mac .. d.lane.suffix
end

local function created_at(id)
  return id and tonumber(call('HGET', TASK .. id, 'created_at'))
end

local function older(a, b)
  return a and b and math.min(a, b) or a or b
end

-- Put a task into its device's queue: `next` is the end served next, else the end of arrivals.
-- Returns the queue's length; 1 means that the device had no queue and may need a seat.
local function push(d, id, created, next)
  d.oldest = older(d.oldest, created)
  return call(next and C.order == 'fifo' and 'LPUSH' or 'RPUSH', d.queue, id)
end

-- Take a task out of its device's queue: an end is O(1), the middle an LREM that the caller bounds.
local function unqueue(d, id, created)
  if call('LINDEX', d.queue, 0) == id then
    call('LPOP', d.queue)
  elseif call('LINDEX', d.queue, -1) == id then
    call('RPOP', d.queue)
  else
    call('LREM', d.queue, 1, id)
  end
  d.stale = d.stale or created == d.oldest
end

-- The lane's oldest task left the queue: find the next one, and with it the device's. A queue is in
-- order of arrival, but for tasks that came back, in any order, to the end served next; these are
-- looked through, up to 64. Under `lifo` later arrivals stand among them, and the head counts too.
local function refresh_oldest(d)
  local lifo, left = C.order == 'lifo', nil
  for at = 0, 63 do
    local id = call('LINDEX', d.queue, lifo and -1 - at or at)
    local f = id and call('HMGET', TASK .. id, 'created_at', 'attempt')
    left = older(left, f and tonumber(f[1]))
    if not id or not (lifo or f[2]) then
      break
    end
  end
  if lifo then
    left = older(left, created_at(call('LINDEX', d.queue, 0)))
  end
  if d.whole.oldest == d.oldest then
    d.whole.oldest = nil
    for name in string.gmatch(C.lanes, '[^,]+') do
      if name ~= d.lane.name then
        local field = lane_of(name).oldest
        d.whole.oldest = older(d.whole.oldest, tonumber(call('HGET', d.meta, field)))
      end
    end
  end
  d.oldest, d.stale = left, nil
end

-- Write what changed of a device: `delta` tasks came or went. Counters equal the lists after it.
local function save(d, delta)
  local L, whole = d.lane, d.whole
  if d.stale then
    refresh_oldest(d)
  end
  whole.oldest = older(whole.oldest, d.oldest)
  whole.total, d.pending = whole.total + delta, d.pending + delta
  if delta ~= 0 then
    call('INCRBY', GLOBAL_PENDING, delta)
    call('HINCRBY', L.virtual, 'pending', delta)
    if whole.total > C.max_per_mac_pending then
      call('SADD', OVERLOADED, d.mac)
    elseif whole.total - delta > C.max_per_mac_pending then
      call('SREM', OVERLOADED, d.mac)
    end
    if whole.total == delta then
      call('ZADD', MACS, now, d.mac)
    end
  end
  if d.pending == 0 then
    call('HDEL', d.meta, L.pending, L.oldest, L.turn, L.served)
  end
  if whole.total == 0 then
    call('ZREM', MACS, d.mac)
    call('HDEL', d.meta, 'pending_count', 'oldest_created_at', 'updated_at')
    return
  end
  local set = { 'pending_count', whole.total, 'updated_at', now }
  if d.pending > 0 then
    set[5], set[6] = L.pending, d.pending
    if d.served == now then
      set[7], set[8], set[9], set[10] = L.turn, d.turn, L.served, now
    end
  end
  if d.oldest ~= d.oldest_before then
    local at = #set
    set[at + 1], set[at + 2] = 'oldest_created_at', whole.oldest or ''
    if d.pending > 0 then
      set[at + 3], set[at + 4] = L.oldest, d.oldest or ''
    end
  end
  call('HSET', d.meta, unpack(set))
end
