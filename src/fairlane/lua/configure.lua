-- Set a device's weight, pause, limits or site; active at once on its backlog.
--
-- What is '' stays as it is; a weight of 1, a limit of 0 and the site `-` are no settings. The last
-- argument, unless it is '', holds the versions of the settings that the caller would change.
-- Returns  {weight, 1 if paused, min_running, max_running, rate, site}
-- Errors   LIMITS_CHANGED (the device's settings are others: read them again)
-- Twice    changes nothing
-- Flags    allow-oom
local mac, meta = ARGV[2], META .. ARGV[2]
local given = { ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8] }
local names = { 'weight', 'paused', 'min_running', 'max_running', 'rate', 'site' }
local none = { weight = '1', paused = '0', min_running = '0', max_running = '0', rate = '0',
  site = '-' }

if ARGV[9] ~= '' then
  local now_set, is_done = call('HMGET', meta, unpack(names)), true
  for at, name in ipairs(names) do
    now_set[at] = now_set[at] or none[name]
    is_done = is_done and (given[at] == '' or given[at] == now_set[at])
  end
  local version = string.sub(redis.sha1hex(table.concat(now_set, ' ')), 1, 16)
  -- A second run of the call that made it so finds it done.
  if not string.find(ARGV[9], version, 1, true) and not is_done then
    return fail('LIMITS_CHANGED', 'device: the settings of ' .. mac
      .. ' are not those that were read; read them again')
  end
end

local before = device(mac, lane_of(string.match(C.lanes, '[^,]+')))
-- The move comes first: a device leaves its site with the weight that it had there.
local given_site = given[6]
if given_site ~= '' and before.whole.total + before.whole.leased > 0 then
  local site = given_site == '-' and (call('HGET', meta, 'at_site') or 'default') or given_site
  if site ~= before.site then
    move_to_site(mac, site)
  end
end
for at, name in ipairs(names) do
  local value = given[at]
  if value == none[name] then
    call('HDEL', meta, name)
  elseif value ~= '' then
    call('HSET', meta, name, value)
  end
end

local set, reply = call('HMGET', meta, unpack(names)), {}
for at, name in ipairs(names) do
  reply[at] = set[at] or none[name]
end
if not set[5] then
  call('HDEL', meta, 'tokens', 'tokens_at')
end
if table.concat(reply, ' ') == '1 0 0 0 0 -' then
  call('HDEL', meta, 'configured')
else
  call('HSET', meta, 'configured', 1)
end

for name in string.gmatch(C.lanes, '[^,]+') do
  local L = lane_of(name)
  call('ZREM', FLOOR .. L.suffix, mac)
  call('ZREM', THROTTLED .. L.suffix, mac)
  local d = device(mac, L)
  reweigh(d, before.weight)
  if seat(d) then
    ring()
  end
  if d.site ~= before.site then
    step_back(L, d.site)
  end
end
return reply
