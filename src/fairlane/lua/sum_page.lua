-- Add up a page of the devices with tasks, or of leases, beside what is stored.
--
-- Returns  {the last event's id, how many there are in all or -1 when one cannot be read,
--          stored {what, sum}…, counted in this page {what, sum}…}
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local place, lane, first, limit = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local last = call('XREVRANGE', EVENTS, '+', '-', 'COUNT', 1)[1]
local stored, sums = {}, {}

local function add(what, n)
  sums[what] = (sums[what] or 0) + n
end

-- False when a device's record cannot be read.
local function add_devices()
  local counts_sites = call('HLEN', SITES_PENDING) <= FEW_SITES
  local fields, names = { 'site', 'at_site' }, {}
  for name in string.gmatch(C.lanes, '[^,]+') do
    local L = lane_of(name)
    fields[#fields + 1], names[#names + 1] = L.field .. 'pending_count', name
    stored[name .. ' pending'] = num(call('HGET', VIRTUAL .. L.suffix, 'pending')) or 0
  end
  for _, site in ipairs(counts_sites and call('HKEYS', SITES_PENDING) or {}) do
    if site == ':all' or not string.find(site, ':', 1, true) then
      stored['pending of site ' .. site] = num(call('HGET', SITES_PENDING, site)) or 0
    end
  end
  for _, mac in ipairs(call('ZRANGE', MACS, first, first + limit - 1)) do
    local f = redis.pcall('HMGET', META .. mac, unpack(fields))
    if f.err then
      return false
    end
    local site = f[1] or f[2] or 'default'
    for at, name in ipairs(names) do
      local pending = num(f[2 + at])
      if pending then
        add(name .. ' pending', pending)
        if counts_sites and site ~= 'default' then
          add('pending of site ' .. site, pending)
          add('pending of site :all', pending)
        end
      end
    end
  end
  return true
end

-- False when a task's or its device's record cannot be read.
local function add_leases()
  local L = lane_of(lane)
  local sites = known_sites(L)
  for _, id in ipairs(call('ZRANGE', INFLIGHT .. L.suffix, first, first + limit - 1)) do
    local mac = redis.pcall('HMGET', TASK .. id, 'mac')[1]
    local f = mac and redis.pcall('HMGET', META .. mac, 'site', 'at_site')
    if not f or f.err then
      return false
    end
    local site = f[1] or f[2] or 'default'
    sites[site] = true
    add(lane .. ' leases of site ' .. site, 1)
  end
  for site in pairs(sites) do
    local own = site == 'default' and L.suffix or L.suffix .. '@' .. site
    stored[lane .. ' leases of site ' .. site] = num(call('HGET', VIRTUAL .. own, 'leased')) or 0
  end
  return true
end

local function rows(of)
  local list = {}
  for what, sum in pairs(of) do
    list[#list + 1] = { what, sum }
  end
  return list
end

local is_read, total
if place == 'macs' then
  is_read, total = add_devices(), call('ZCARD', MACS)
else
  is_read, total = add_leases(), call('ZCARD', INFLIGHT .. lane_of(lane).suffix)
end
return { last and last[1] or '', is_read and total or -1, rows(stored), rows(sums) }
