-- What is counted over all devices and tasks, and counting it anew, unless it is of many.

-- Of the devices that have pending tasks: these by lane, and by site, and the weights over 1 of
-- those in each schedule, in millionths. Nil if there are many, or if one of them cannot be read.
local function count_all_pending()
  if call('ZCARD', MACS) > FEW_DEVICES then
    return nil
  end
  local fields, places = { 'weight', 'site', 'at_site' }, {}
  for name in string.gmatch(C.lanes, '[^,]+') do
    local L = lane_of(name)
    fields[#fields + 1], places[#places + 1] = L.field .. 'pending_count', L
  end
  local lanes, sites, extras = {}, {}, {}
  for _, mac in ipairs(call('ZRANGE', MACS, 0, FEW_DEVICES - 1)) do
    local f = redis.pcall('HMGET', META .. mac, unpack(fields))
    if f.err then
      return nil
    end
    local site, extra = f[2] or f[3] or 'default', f[1] and num(f[1]) - 1 or 0
    for at, L in ipairs(places) do
      local pending = num(f[3 + at])
      if pending then
        lanes[L.name] = (lanes[L.name] or 0) + pending
        sites[site] = (sites[site] or 0) + pending
      end
      local schedule = extra ~= 0 and order_of_devices(L, site).schedule
      if schedule and call('ZSCORE', schedule, mac) then
        extras[schedule] = (extras[schedule] or 0) + math.floor(extra * 1000000 + 0.5)
      end
    end
  end
  return lanes, sites, extras
end

-- The leases of a lane by site; nil if there are many.
local function count_all_leased(L)
  local key, sites = INFLIGHT .. L.suffix, {}
  if call('ZCARD', key) > FEW_TASKS then
    return nil
  end
  for _, id in ipairs(call('ZRANGE', key, 0, FEW_TASKS - 1)) do
    local mac = redis.pcall('HMGET', TASK .. id, 'mac')[1]
    local f = mac and redis.pcall('HMGET', META .. mac, 'site', 'at_site')
    if f and f.err then
      return nil
    elseif f then
      local site = f[1] or f[2] or 'default'
      sites[site] = (sites[site] or 0) + 1
    end
  end
  return sites
end

-- At most how many sites there are that may have something in a lane.
local function count_sites(L)
  return call('ZCARD', SITES .. L.suffix) + call('HLEN', SITES_PENDING)
end

-- The sites that are known by anything that they have in a lane; none if there are many.
local function known_sites(L, leased, pending)
  if count_sites(L) > FEW_SITES then
    return {}
  end
  local sites = { default = true }
  for _, site in ipairs(call('ZRANGE', SITES .. L.suffix, 0, FEW_SITES - 1)) do
    sites[site] = true
  end
  for _, site in ipairs(call('HKEYS', SITES_PENDING)) do
    if not string.find(site, ':', 1, true) then
      sites[site] = true
    end
  end
  for _, counts in ipairs({ leased or {}, pending or {} }) do
    for site in pairs(counts) do
      sites[site] = true
    end
  end
  return sites
end

-- The slots that the workers report, lane by lane; nil while the sweep has one to take back, whose
-- row has ended by itself.
local function count_reported()
  local slots = {}
  for _, worker in ipairs(call('ZRANGE', WORKERS, 0, 999)) do
    local f = call('HMGET', WORKER .. worker, 'lanes', 'slots')
    if not f[1] then
      return nil
    end
    for name in string.gmatch(f[1], '[^,]+') do
      slots[name] = (slots[name] or 0) + (num(f[2]) or 0)
    end
  end
  return slots
end

-- The flaws of a lane's sites, and of one that is left though it has nothing.
local function audit_sites(note, L, sites, leased, extras)
  local suffix = L.suffix
  for site in pairs(sites) do
    local own = site == 'default' and suffix or suffix .. '@' .. site
    local count = leased and (leased[site] or 0)
    if leased then
      note({ 'HSET', VIRTUAL .. own, 'leased', count }, L.name .. ' leases of site ' .. site,
        num(call('HGET', VIRTUAL .. own, 'leased')) or 0, count)
    end
    if C.policy == 'aging' and count == 0 and site ~= 'default' then
      note({ 'UNLINK', VIRTUAL .. own, FINISH .. own }, L.name .. ' keys of site ' .. site,
        call('EXISTS', VIRTUAL .. own, FINISH .. own), 0)
    elseif C.policy == 'fair' then
      local order = order_of_devices(L, site)
      local able = call('ZCARD', order.schedule) > 0
      if extras then
        local extra = extras[order.schedule] or 0
        note({ 'HSET', order.virtual, 'extra', extra }, L.name .. ' weights of site ' .. site,
          num(call('HGET', order.virtual, 'extra')) or 0, extra)
      end
      note({ 'SITE', L, site }, L.name .. ' can serve site ' .. site,
        call('ZSCORE', SITES .. suffix, site) and 1 or 0, able and 1 or 0)
      if not able and count == 0 and site ~= 'default' then
        note({ 'UNLINK', order.virtual, order.finish }, L.name .. ' keys of site ' .. site,
          call('EXISTS', order.virtual, order.finish), 0)
      end
    end
  end
end

-- What there is too much of to be counted in one step: of whom, and how many.
local function left_out()
  local left = {}
  local function bound(what, count, most)
    if count > most then
      left[#left + 1] = { what, count }
    end
  end
  bound('devices with tasks', call('ZCARD', MACS), FEW_DEVICES)
  bound('delayed tasks', call('ZCARD', DELAYED), FEW_TASKS)
  for name in string.gmatch(C.lanes, '[^,]+') do
    local L = lane_of(name)
    bound('leases in lane ' .. name, call('ZCARD', INFLIGHT .. L.suffix), FEW_TASKS)
    bound('sites in lane ' .. name, count_sites(L), FEW_SITES)
  end
  return left
end

-- The flaws of what is counted in all; each has the command that mends it.
local function audit_sums()
  local flaws = {}
  local function note(command, what, found, wanted)
    if found ~= wanted then
      flaws[#flaws + 1] = { 'store', what, tostring(found), tostring(wanted), command }
    end
  end
  local total = call('ZCARD', DEADLINES)
  note({ 'SET', GLOBAL_PENDING, total }, 'global_pending',
    count(call('GET', GLOBAL_PENDING)) or 0, total)
  local lanes, pending, extras = count_all_pending()
  local slots = count_reported()
  for name in string.gmatch(C.lanes, '[^,]+') do
    local L = lane_of(name)
    if lanes then
      note({ 'HSET', VIRTUAL .. L.suffix, 'pending', lanes[name] or 0 }, name .. ' pending',
        num(call('HGET', VIRTUAL .. L.suffix, 'pending')) or 0, lanes[name] or 0)
    end
    local leased = count_all_leased(L)
    audit_sites(note, L, known_sites(L, leased, pending), leased, extras)
    if slots then
      note({ 'SLOTS' }, name .. ' slots',
        num(call('HGET', CAPACITY, 'slots:' .. name)) or 0, slots[name] or 0)
    end
  end
  if pending then
    local sum = 0
    for site, count in pairs(pending) do
      sum = sum + (site == 'default' and 0 or count)
    end
    pending[':all'] = sum
    for _, site in ipairs(call('HKEYS', SITES_PENDING)) do
      local is_count = site == ':all' or not string.find(site, ':', 1, true)
      pending[site] = pending[site] or is_count and 0 or nil
    end
    pending.default = nil
    for site, count in pairs(pending) do
      note(count == 0 and { 'HDEL', SITES_PENDING, site } or { 'HSET', SITES_PENDING, site, count },
        'pending of site ' .. site, num(call('HGET', SITES_PENDING, site)) or 0, count)
    end
  end
  return flaws
end

-- Count anew what is counted in all, where it is wrong; returns what was.
local function mend_all_sums()
  local flaws = audit_sums()
  for _, flaw in ipairs(flaws) do
    local command = flaw[5]
    if command[1] == 'SLOTS' then
      count_slots()
    elseif command[1] == 'SITE' then
      local L, site = command[2], command[3]
      if call('ZCARD', order_of_devices(L, site).schedule) > 0 then
        local entrant = site_of(L, site)
        call('ZADD', entrant.order.schedule, -start_tag(entrant), site)
      else
        step_back(L, site)
      end
    else
      call(unpack(command))
    end
  end
  return flaws
end
