-- What a lane's workers can take: their slots, a little headroom, and what is free of both.

-- Add up what the living workers offer: slots per lane, and per pool. A pool is the lanes that
-- workers serve together, directly or through others; its slots are counted once.
local function count_slots()
  local slots, pool, offers = {}, {}, {}
  for _, worker in ipairs(call('ZRANGE', WORKERS, 0, 999)) do
    local f = call('HMGET', WORKER .. worker, 'lanes', 'slots')
    local offered, merged = num(f[2]) or 0, {}
    for name in string.gmatch(f[1] or '', '[^,]+') do
      slots[name] = (slots[name] or 0) + offered
      for member in pairs(pool[name] or { [name] = true }) do
        merged[member] = true
      end
    end
    for member in pairs(merged) do
      pool[member] = merged
    end
    offers[#offers + 1] = { next(merged), offered }
  end
  local pool_slots = {}
  for _, offer in ipairs(offers) do
    local members = offer[1] and pool[offer[1]]
    if members then
      pool_slots[members] = (pool_slots[members] or 0) + offer[2]
    end
  end
  for name in string.gmatch(C.lanes, '[^,]+') do
    local members = pool[name] or {}
    local names = {}
    for member in pairs(members) do
      names[#names + 1] = member
    end
    table.sort(names)
    call('HSET', CAPACITY, 'slots:' .. name, slots[name] or 0, 'pool:' .. name,
      table.concat(names, ','), 'pool_slots:' .. name, pool_slots[members] or 0)
  end
end

-- How many tasks beyond its slots a lane may have leased, so that no slot waits for the dispatcher:
-- what its slots finish within target_delay, by the measured run time of its tasks. A lane of slow
-- tasks has none: what waits in the broker cannot be overtaken by a lighter device.
local function headroom(slots, service_ms)
  if not service_ms then
    return 1
  end
  return math.min(2 * slots, math.floor(slots * C.target_delay_ms / math.max(1, service_ms)))
end

-- Free places of a lane: slots and headroom less leased tasks, its own and its pool's.
local function credits(L)
  local f = call('HMGET', CAPACITY, 'slots:' .. L.name, 'pool:' .. L.name, 'pool_slots:' .. L.name,
    'service_ms:' .. L.name)
  local slots = num(f[1]) or 0
  if slots == 0 then
    return 0
  end
  local free, pool = slots - call('ZCARD', INFLIGHT .. L.suffix), num(f[3])
  for name in string.gmatch(f[2], '[^,]+') do
    pool = pool - call('ZCARD', INFLIGHT .. lane_of(name).suffix)
  end
  return math.max(0, math.min(free, pool) + headroom(slots, num(f[4])))
end
