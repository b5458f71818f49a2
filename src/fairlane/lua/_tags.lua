-- Start-time fair queueing (Goyal, Vin and Cheng, 1996), twice: over the sites of a lane, and over
-- the devices of a site. Both are entrants of an order.
--
-- An order is a schedule (score = minus the start tag), its virtual time `v`, and remembered tags.
-- An entrant `e` is named in `e.order`. Its tag stands in the schedule while it can go; beside its
-- leases (`e.hold`, `e.hold_field`) while it cannot but has some, for their costs are not known
-- yet; else it is remembered while it is ahead of v. Behind v it says no more than v does.
--
-- A tag counts 16 to the microsecond of cost, so that the order of arrival fits below any real
-- difference; whole numbers up to 2^53.
local UNITS_PER_MS = 16000

local function order_of_sites(L)
  return { schedule = SITES .. L.suffix, finish = SITES_FINISH .. L.suffix,
    virtual = VIRTUAL .. L.suffix, v = 'site_v', joined = 'site_joined', work = 'site_work' }
end

-- Under `aging` there are no sites: one order takes all devices of the lane.
local function order_of_devices(L, site)
  local suffix = L.suffix
  if C.policy == 'fair' and site ~= 'default' then
    suffix = suffix .. '@' .. site
  end
  return { schedule = SCHEDULE .. suffix, finish = FINISH .. suffix, virtual = VIRTUAL .. suffix,
    v = 'v', joined = 'joined', work = 'work', extra = 'extra' }
end

-- A site as an entrant of its lane; `inner` is the order of its devices.
local function site_of(L, name)
  local inner = order_of_devices(L, name)
  local f = call('HMGET', inner.virtual, 'leased', 'tag')
  return { name = name, order = order_of_sites(L), inner = inner, hold = inner.virtual,
    hold_field = 'tag', leased = tonumber(f[1]) or 0, held = tonumber(f[2]) }
end

-- The order of a device's site in its lane, with the device as its entrant.
local function place_of(d)
  if not d.order then
    d.order = order_of_devices(d.lane, d.site)
    d.name, d.hold, d.hold_field = d.mac, d.meta, d.lane.field .. 'tag'
  end
  return d.order
end

local function virtual_time(order)
  local f = call('HMGET', order.virtual, order.v, order.joined)
  return tonumber(f[1]) or 0, tonumber(f[2]) or 0
end

-- Weights other than 1 are kept as what they are more, in millionths, of all in the schedule: an
-- entrant came (`sign` 1) or left (-1).
local function weigh(e, weight, sign)
  local extra = math.floor((weight - 1) * 1000000 + 0.5)
  if extra ~= 0 then
    call('HINCRBY', e.order.virtual, e.order.extra, sign * extra)
  end
end

-- Work was done for an order: where v would be if all that is served moved it, each by its cost /
-- the weights in the schedule. Newcomers alone do not move v, and may come without end.
local function count_work(order, used)
  local entrants = call('ZCARD', order.schedule)
  if entrants > 0 then
    local extra = order.extra and tonumber(call('HGET', order.virtual, order.extra)) or 0
    -- No weight is under 0.001; what else would come of a store that somebody wrote to?
    local weights = math.max(entrants * 1000000 + extra, entrants * 1000)
    call('HINCRBY', order.virtual, order.work, math.floor(used * 1000000 / weights))
  end
end

-- How far an order has come, by its tags or by its work.
local function progress(order)
  local f = call('HMGET', order.virtual, order.v, order.work)
  local v, work = tonumber(f[1]) or 0, tonumber(f[2]) or 0
  if work < v then
    call('HSET', order.virtual, order.work, v)
  end
  return math.max(v, work)
end

-- The first tag from `tag` on that no entrant of the schedule has, or the name would decide. Tags
-- `tag` to `tag + low - 1` are known to be taken; a run of them ends where a count falls short.
local function free_tag(order, tag)
  local low, high = 0, 1
  for _ = 1, 53 do
    if call('ZCOUNT', order.schedule, -(tag + high - 1), -tag) < high then
      break
    end
    low, high = high, high * 2
  end
  for _ = 1, 53 do
    if high - low <= 1 then
      break
    end
    local middle = math.floor((low + high) / 2)
    if call('ZCOUNT', order.schedule, -(tag + middle - 1), -tag) < middle then
      high = middle
    else
      low = middle
    end
  end
  return tag + low
end

-- An entrant's tag and where it stands, or nil.
local function tag_of(e)
  local score = call('ZSCORE', e.order.schedule, e.name)
  if score then
    return -tonumber(score), 'scheduled'
  elseif e.held then
    return e.held, 'held'
  end
  local tag = tonumber(call('ZSCORE', e.order.finish, e.name))
  return tag, tag and 'remembered'
end

-- Write an entrant's tag where it belongs; `place` is where it stood, nil if nowhere.
local function put_tag(e, tag, place)
  local order = e.order
  if place == 'scheduled' then
    -- Its own tag is not in its way.
    call('ZREM', order.schedule, e.name)
    call('ZADD', order.schedule, -free_tag(order, tag), e.name)
  elseif e.leased > 0 then
    e.held = tag
    call('HSET', e.hold, e.hold_field, tag)
    if place == 'remembered' then
      call('ZREM', order.finish, e.name)
    end
  else
    if place == 'held' then
      e.held = nil
      call('HDEL', e.hold, e.hold_field)
    end
    if tag > virtual_time(order) then
      call('ZADD', order.finish, tag, e.name)
    elseif place == 'remembered' then
      call('ZREM', order.finish, e.name)
    end
  end
end

-- The tag of an entrant that can go again: its own if that is ahead of v, else v, after the
-- newcomers that came before it. So nobody saves up while away, and nobody is forgiven.
local function start_tag(e)
  local order = e.order
  local v, joined = virtual_time(order)
  local tag, place = tag_of(e)
  if place == 'held' then
    e.held = nil
    call('HDEL', e.hold, e.hold_field)
  elseif place == 'remembered' then
    call('ZREM', order.finish, e.name)
  end
  if not tag or tag <= v then
    tag = math.max(v, joined + 1)
    call('HSET', order.virtual, order.joined, tag)
  end
  return free_tag(order, tag)
end

-- Move an entrant's tag by a cost, back when it is below 0: never past v, which is no credit.
local function move_tag(e, cost)
  local tag, place = tag_of(e)
  if cost == 0 and place == 'scheduled' or not tag and cost <= 0 and e.leased == 0 then
    return
  end
  local v = virtual_time(e.order)
  tag = tag or v
  local to = tag + cost
  if cost < 0 then
    to = math.max(to, math.min(tag, v))
  end
  put_tag(e, to, place)
end

-- Forget up to 64 remembered tags that v has passed. Past 100,000 of them v rises to the lowest.
local function reap(order)
  local v = virtual_time(order)
  local past = call('ZRANGE', order.finish, '-inf', v, 'BYSCORE', 'LIMIT', 0, 64)
  if #past > 0 then
    call('ZREM', order.finish, unpack(past))
  elseif call('ZCARD', order.finish) > 100000 then
    call('HSET', order.virtual, order.v, call('ZRANGE', order.finish, 0, 0, 'WITHSCORES')[2])
  end
end

-- An order that is idle, with nobody in its schedule and nothing leased, forgets, so nobody pays
-- for a past rush. It begins at 0 again: past 2^53 arrivals could not be told apart.
local function rest(order)
  call('UNLINK', order.finish)
  call('HDEL', order.virtual, order.v, order.joined, order.work)
end
