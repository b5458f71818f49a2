-- Tell why a task waits, and what is served before it.
--
-- `ahead` is what starts before it by the order of service: of its device's queue, of each device
-- that is served sooner (at most 200 are looked at, the rest taken to be like the last), and of
-- each site. `most` is the same if those devices never run out of tasks.
--
-- Returns  {clock, state, mac, lane, due or 0, place or -1, device {rank or -1, paused, leased,
--          max_running, rate, backoff until, turn until, token at}, lane {slots, credits, leased,
--          slots of its own, mean run ms}, own ms a task, ahead {tasks, ms}, most ms}
-- Errors   TASK_NOT_FOUND
-- Twice    reads again
-- Flags    no-writes
local id = ARGV[2]
local f = call('HMGET', TASK .. id, 'state', 'mac', 'lane', 'task_type', 'size', 'cost_ms',
  'due_at', 'expires_at')
if not f[1] then
  return not_found(id)
end
local state, mac, task_type = f[1], f[2] or '', f[4] or ''
local L = lane_of(f[3] or '')
local d = device(mac, L)
local fair = C.policy == 'fair'

local place = state == 'pending' and call('LPOS', d.queue, id) or nil
if place and C.order == 'lifo' then
  place = call('LLEN', d.queue) - 1 - place
end
local before = place or 0

local capacity = call('HMGET', CAPACITY, 'slots:' .. L.name, 'service_ms:' .. L.name,
  'pool:' .. L.name, 'pool_slots:' .. L.name)
local slots, mean = tonumber(capacity[1]) or 0, tonumber(capacity[2]) or 10
-- Lanes that share workers share their slots while they have tasks.
local sharing = 0
for name in string.gmatch(capacity[3] or '', '[^,]+') do
  local busy = name == L.name or call('ZCARD', WAITING .. lane_of(name).suffix) > 0
  sharing = sharing + (busy and 1 or 0)
end
local own_slots = slots / math.max(1, sharing)
local own = estimate(d, {}, task_type, f[5] or 0, num(f[6])) / UNITS_PER_MS

-- Tasks and ms of work before it, and ms at most.
local tasks, ahead, most = before, before * own, before * own

-- What a device gets while one with a tag beyond its own waits: as many tasks as begin by then.
local function share(name, tag, until_tag)
  local g = call('HMGET', META .. name, L.field .. 'pending_count', 'weight',
    task_type .. '.run_ms')
  local cost = math.max(0.001, tonumber(g[3]) or mean)
  local begin = math.ceil((until_tag - tag) * (tonumber(g[2]) or 1) / (cost * UNITS_PER_MS))
  local has = math.min(tonumber(g[1]) or 0, begin)
  return has, has * cost, begin * cost
end

local function add_devices()
  local order = place_of(d)
  local score = call('ZSCORE', order.schedule, mac)
  local tag = score and -tonumber(score) or math.max(tag_of(d) or 0, virtual_time(order))
  local until_tag = tag + before * own * UNITS_PER_MS / d.weight
  local sooner = call('ZREVRANGE', order.schedule, 0, 199, 'WITHSCORES')
  local looked, last = 0, { 0, 0, 0 }
  for at = 1, #sooner, 2 do
    local their = -tonumber(sooner[at + 1])
    if sooner[at] ~= mac and their < until_tag then
      local count, ms, most_ms = share(sooner[at], their, until_tag)
      tasks, ahead, most = tasks + count, ahead + ms, most + most_ms
      looked, last = looked + 1, { count, ms, most_ms }
    end
  end
  local unseen = call('ZCOUNT', order.schedule, '(' .. string.format('%.0f', -until_tag), '+inf')
    - looked - 1
  if #sooner == 400 and unseen > 0 then
    tasks, ahead, most = tasks + unseen * last[1], ahead + unseen * last[2],
      most + unseen * last[3]
  end
end

local function add_sites()
  local sites = order_of_sites(L)
  local tag = tag_of(site_of(L, d.site)) or virtual_time(sites)
  local until_tag = tag + ahead * UNITS_PER_MS
  local others = call('ZREVRANGE', sites.schedule, 0, 63, 'WITHSCORES')
  for at = 1, #others, 2 do
    local gap = (until_tag + tonumber(others[at + 1])) / UNITS_PER_MS
    if others[at] ~= d.site and gap > 0 then
      local pending = num(call('HGET', SITES_PENDING, others[at]))
        or math.max(0, (count(call('GET', GLOBAL_PENDING)) or 0)
          - (num(call('HGET', SITES_PENDING, ':all')) or 0))
      local ms = math.min(pending * mean, gap)
      tasks, ahead, most = tasks + math.ceil(ms / mean), ahead + ms, most + gap
    end
  end
end

local function add_older()
  -- `aging` serves the oldest first: those of all lanes that expire sooner, by the lane's part.
  local all = math.max(1, count(call('GET', GLOBAL_PENDING)) or 1)
  local here = num(call('HGET', VIRTUAL .. L.suffix, 'pending')) or 0
  tasks = math.floor(call('ZCOUNT', DEADLINES, '-inf', '(' .. (f[8] or '0')) * here / all)
  ahead, most = tasks * mean, here * mean
end

if fair then
  add_devices()
  if not is_alone(L, d.site) then
    add_sites()
  end
else
  add_older()
end

return {
  now, state, mac, L.name, num(f[7]) or 0, place or -1,
  { call('ZREVRANK', place_of(d).schedule, mac) or -1, d.paused and 1 or 0, d.whole.leased,
    d.max_running or 0, tostring(d.rate or 0), tonumber(call('ZSCORE', BACKOFF .. L.suffix, mac))
    or 0, tonumber(call('ZSCORE', TURNS, d.turn_id)) or 0, token_due(d) or 0 },
  { slots, credits(L), call('ZCARD', INFLIGHT .. L.suffix), tostring(own_slots), tostring(mean) },
  tostring(own), { tasks, tostring(ahead) }, tostring(most),
}
