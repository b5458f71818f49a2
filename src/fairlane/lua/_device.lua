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
  return {
    mac = mac, lane = L, meta = meta,
    queue = QUEUE .. mac .. L.suffix, active = ACTIVE .. mac .. L.suffix,
    turn_id = L.name .. '|' .. mac,
    whole = whole or { total = tonumber(f[1]) or 0, oldest = tonumber(f[2]) },
    weight = tonumber(f[3]) or 1, paused = f[4] == '1',
    pending = tonumber(f[5]) or 0, oldest = tonumber(f[6]),
    turn = tonumber(f[7]) or 0, served = tonumber(f[8]) or 0,
  }
end

local function created_at(id)
  return id and tonumber(call('HGET', TASK .. id, 'created_at'))
end

local function older(a, b)
  return a and b and math.min(a, b) or a or b
end

-- Put a task into its device's queue: `next` is the end served next, else the end of arrivals.
local function push(d, id, created, next)
  call(next and C.order == 'fifo' and 'LPUSH' or 'RPUSH', d.queue, id)
  d.oldest = older(d.oldest, created)
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

-- Write what changed of a device: `delta` tasks came or went. Counters equal the lists after it.
local function save(d, delta)
  local L, whole = d.lane, d.whole
  if d.stale then
    local left = created_at(call('LINDEX', d.queue, 0))
    if C.order == 'lifo' then
      left = older(left, created_at(call('LINDEX', d.queue, -1)))
    end
    if whole.oldest == d.oldest then
      whole.oldest = left
      for name in string.gmatch(call('HGET', CONFIG, 'lanes'), '[^,]+') do
        if name ~= L.name then
          whole.oldest = older(whole.oldest, tonumber(call('HGET', d.meta, lane_of(name).oldest)))
        end
      end
    end
    d.oldest, d.stale = left, nil
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
  end
  if whole.total == 0 then
    call('HDEL', d.meta, 'pending_count', 'oldest_created_at', 'updated_at')
    call('ZREM', MACS, d.mac)
  else
    call('HSET', d.meta, 'pending_count', whole.total, 'oldest_created_at', whole.oldest or '',
      'updated_at', now)
    call('ZADD', MACS, whole.total, d.mac)
  end
  if d.pending == 0 then
    call('HDEL', d.meta, L.pending, L.oldest, L.turn, L.served)
  else
    call('HSET', d.meta, L.pending, d.pending, L.oldest, d.oldest or '', L.turn, d.turn,
      L.served, d.served)
  end
end
