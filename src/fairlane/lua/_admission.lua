-- What admits a task. A limit holds exactly, and once it was met it holds until the count has
-- fallen to its low mark: a refused caller who comes back finds room, not the next refusal.

-- The levels that admission compares, read once a script; the caller counts what it accepts.
local function read_levels()
  local f = call('HMGET', SITES_PENDING, ':all', ':full', ':store')
  return { pending = count(call('GET', GLOBAL_PENDING)) or 0, sited = num(f[1]) or 0,
    full = f[2], store = f[3], crossed = 0, sites = {} }
end

-- To what percent of its memory the store must fall before it takes in tasks again.
local function store_low_mark()
  return math.floor(C.store_full_percent * C.low_mark_percent / 100)
end

-- While the store's memory is over its high mark, what drains it needs the rest.
local function store_refusal(levels)
  local percent, until_ms = string.match(levels.store or '', '^(%d+) (%d+)$')
  if percent and now < tonumber(until_ms) then
    return 'store_full', tonumber(percent), C.store_full_percent, store_low_mark()
  end
end

-- Is a count at its limit, or was it and has not fallen enough since? Returns the limit in force or
-- nil, what has become of the mark, and the low mark.
local function limit_in_force(count, limit, was_full)
  local low = math.min(limit - 1, math.floor(limit * C.low_mark_percent / 100))
  if count >= limit then
    return limit, true, low
  elseif was_full and count > low then
    return low + 1, true, low
  end
  return nil, false
end

-- A site's pending tasks, and whether it is marked as full.
local function site_levels(levels, name)
  local known = levels.sites[name]
  if not known then
    local f = call('HMGET', SITES_PENDING, name, 'full:' .. name)
    known = { pending = num(f[1]) or 0, full = f[2] }
    if name == 'default' then
      known.pending = levels.pending - levels.sited
    end
    levels.sites[name] = known
  end
  return known
end

-- While others have tasks too, a site may have four times what is left: one that floods cannot fill
-- the store.
local function site_refusal(levels, name)
  if levels.sited == 0 and C.max_per_site_pending == 0 then
    return nil
  end
  local site, limit = site_levels(levels, name), C.max_total_pending
  if C.max_per_site_pending > 0 then
    limit = math.min(limit, C.max_per_site_pending)
  end
  if levels.pending > site.pending then
    limit = math.min(limit, math.max(1, 4 * (C.max_total_pending - levels.pending)))
  end
  local in_force, full, low = limit_in_force(site.pending, limit, site.full)
  if full and not site.full then
    call('HSET', SITES_PENDING, 'full:' .. name, 1)
  elseif site.full and not full then
    call('HDEL', SITES_PENDING, 'full:' .. name)
  end
  site.full = full
  if in_force then
    return 'site_full', site.pending, in_force, low
  end
end

local function device_refusal(levels, d, count)
  local left = math.max(1, math.floor((C.max_total_pending - levels.pending) / 2))
  local most = math.min(C.max_per_mac_pending, left)
  local in_force, full, low = limit_in_force(count, most, d.whole.full)
  if full and not d.whole.full then
    call('HSET', d.meta, 'full', 1)
  elseif d.whole.full and not full then
    call('HDEL', d.meta, 'full')
  end
  d.whole.full = full
  if in_force then
    return 'device_full', count, in_force, low
  end
end

local function global_refusal(levels)
  local in_force, full, low = limit_in_force(levels.pending, C.max_total_pending, levels.full)
  if full and not levels.full then
    call('HSET', SITES_PENDING, ':full', 1)
  elseif levels.full and not full then
    call('HDEL', SITES_PENDING, ':full')
  end
  levels.full = full
  if in_force then
    return 'global_full', levels.pending, in_force, low
  end
end

-- The document's formula: everybody is refused while G > G_max or any device is over its limit.
local function system_refusal(levels)
  local overloaded = call('SCARD', OVERLOADED) + levels.crossed
  if levels.pending > C.max_total_pending then
    return 'global_full', levels.pending, C.max_total_pending, C.max_total_pending
  elseif overloaded > 0 then
    -- What the formula compares: |O| > 0.
    return 'device_full', overloaded, 0, 0
  end
end

-- Why a task of a device, in `site`, may not be stored now, or nil; `count` is the device's pending
-- tasks in all lanes. Returns the reason, what is pending, the limit in force, and the low mark.
local function refusal(levels, d, site, count)
  local reason, pending, limit, low = store_refusal(levels)
  if reason then
    return reason, pending, limit, low
  elseif C.admission == 'system' then
    return system_refusal(levels)
  end
  reason, pending, limit, low = global_refusal(levels)
  if not reason then
    reason, pending, limit, low = site_refusal(levels, site)
  end
  if not reason then
    reason, pending, limit, low = device_refusal(levels, d, count)
  end
  return reason, pending, limit, low
end

-- An accepted task, in the levels that the next task of the same script is compared with.
local function count_accepted(levels, site, count)
  levels.pending = levels.pending + 1
  if site ~= 'default' then
    levels.sited = levels.sited + 1
  end
  if levels.sites[site] then
    levels.sites[site].pending = levels.sites[site].pending + 1
  end
  levels.crossed = levels.crossed + (count == C.max_per_mac_pending and 1 or 0)
end

-- How long until a count has fallen to where it admits again, from the measured drain rate, of
-- which a site or device has its fair share; the watermark's interval when none was measured.
local function retry_after_ms(reason, pending, low)
  if reason == 'idempotency_full' then
    local first = call('ZRANGE', RECEIPTS_DUE, 0, 0, 'WITHSCORES')[2]
    return math.max(1000, math.min(600000, tonumber(first) - now))
  end
  local rate = num(call('HGET', CAPACITY, 'drained_per_hour')) or 0
  if rate <= 0 then
    return 15000
  elseif reason == 'store_full' then
    -- Percents of memory, which is taken for that of what is pending.
    local waiting = count(call('GET', GLOBAL_PENDING)) or 0
    pending, low = waiting, waiting * low / pending
  end
  if reason == 'device_full' then
    rate = rate / math.max(1, call('ZCARD', MACS))
  elseif reason == 'site_full' then
    -- Not counted are the sum and the mark of the site itself; `default` is.
    rate = rate / math.max(1, call('HLEN', SITES_PENDING) - 1)
  end
  return math.max(1000, math.min(600000, math.ceil((pending - low) * 3600000 / rate)))
end
