-- What admits a task, what a lane's workers can take, and the checks that several verbs make.

-- Why a task may not be stored now, or nil; `count` is the device's pending tasks in all lanes,
-- `crossed` how many devices this script has put over their limit and not yet written.
local function refusal(count, pending, crossed)
  local total, per_mac = C.max_total_pending, C.max_per_mac_pending
  if C.admission == 'system' then
    local over = call('SCARD', OVERLOADED) + (crossed or 0)
    if pending > total then
      return 'global_full', pending, total
    elseif over > 0 then
      -- What the formula compares: |O| > 0.
      return 'device_full', over, 0
    end
  elseif pending >= total then
    return 'global_full', pending, total
  else
    local limit = math.min(per_mac, math.max(1, math.floor((total - pending) / 2)))
    if count >= limit then
      return 'device_full', count, limit
    end
  end
end

-- How long until there is room, from the measured drain rate; the watermark's interval without one.
local function retry_after_ms(reason, pending, limit)
  local rate = tonumber(call('HGET', CAPACITY, 'drained_per_hour')) or 0
  if rate <= 0 then
    return 15000
  end
  local excess = reason == 'global_full' and pending - limit * 0.9 or 1
  return math.max(1000, math.min(600000, math.ceil(excess * 3600000 / rate)))
end

-- Add up what the living workers offer: slots per lane, and per pool. A pool is the lanes that
-- workers serve together, directly or through others; its slots are counted once.
local function count_slots()
  local slots, pool, offers, gpu = {}, {}, {}, 0
  for _, worker in ipairs(call('ZRANGE', WORKERS, 0, 999)) do
    local f = call('HMGET', WORKER .. worker, 'lanes', 'slots', 'gpu')
    local offered, merged = tonumber(f[2]) or 0, {}
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
    gpu = gpu + (f[3] == '1' and offered > 0 and 1 or 0)
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
  call('HSET', CAPACITY, 'gpu_workers', gpu)
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
  local slots = tonumber(f[1]) or 0
  if slots == 0 then
    return 0
  end
  local free, pool = slots - call('ZCARD', L.inflight), tonumber(f[3])
  for name in string.gmatch(f[2], '[^,]+') do
    pool = pool - call('ZCARD', lane_of(name).inflight)
  end
  return math.max(0, math.min(free, pool) + headroom(slots, tonumber(f[4])))
end

-- Keep a moving average of how long a lane's tasks run.
local function learn_service(L, ran_ms)
  local field = 'service_ms:' .. L.name
  local before = tonumber(call('HGET', CAPACITY, field)) or ran_ms
  call('HSET', CAPACITY, field, string.format('%.3f', before + (ran_ms - before) * 0.1))
end

local function not_found(id)
  return fail('TASK_NOT_FOUND', 'task_id: ' .. id .. ' is unknown, or its retention is over')
end

-- An error unless `attempt` is the current one of a task that has not ended.
local function not_current(id, state, current, attempt)
  if not state then
    return not_found(id)
  elseif state == 'dead' or not TRANSITIONS[state] then
    return fail('TASK_ENDED', 'task_id: ' .. id .. ' is ' .. state)
  elseif current ~= attempt then
    return fail('STALE_ATTEMPT', 'task_id: attempt ' .. attempt .. ' of ' .. id
      .. ' is not the current one, ' .. (current or 'none'))
  end
end

local function not_running(id, state, attempt)
  if state ~= 'running' then
    return fail('STALE_ATTEMPT', 'task_id: attempt ' .. attempt .. ' of ' .. id .. ' is ' .. state)
  end
end
