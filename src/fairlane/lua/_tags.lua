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
  local round = L.round
  if round and round.sites then
    return round.sites
  end
  local order = { schedule = SITES .. L.suffix, finish = SITES_FINISH .. L.suffix,
    virtual = VIRTUAL .. L.suffix, v = 'site_v', joined = 'site_joined', work = 'site_work' }
  if round then
    round.sites, order.is_shared = order, true
  end
  return order
end

-- Under `aging` there are no sites: one order takes all devices of the lane.
local function order_of_devices(L, site)
  local suffix = L.suffix
  if C.policy == 'fair' and site ~= 'default' then
    suffix = suffix .. '@' .. site
  end
  local round = L.round
  if round and round.orders[suffix] then
    return round.orders[suffix]
  end
  local order = { schedule = SCHEDULE .. suffix, finish = FINISH .. suffix,
    virtual = VIRTUAL .. suffix, v = 'v', joined = 'joined', work = 'work', extra = 'extra' }
  if round then
    round.orders[suffix], order.is_shared = order, true
  end
  return order
end

-- A site as an entrant of its lane; `inner` is the order of its devices.
local function site_of(L, name)
  local inner = order_of_devices(L, name)
  local f = call('HMGET', inner.virtual, 'leased', 'tag')
  return { name = name, order = order_of_sites(L), inner = inner, hold = inner.virtual,
    hold_field = 'tag', leased = num(f[1]) or 0, held = num(f[2]) }
end

-- The order of a device's site in its lane, with the device as its entrant.
local function place_of(d)
  if not d.order then
    d.order = order_of_devices(d.lane, d.site)
    d.name, d.hold, d.hold_field = d.mac, d.meta, d.lane.field .. 'tag'
  end
  return d.order
end

-- An order's virtual time, and the tag of its last newcomer. What the weights in its schedule are
-- more than 1 is read along, for `count_work`.
local function virtual_time(order)
  local known = order.known
  if not known then
    local f = call('HMGET', order.virtual, order.v, order.joined, order.extra or order.v)
    known = { v = num(f[1]) or 0, joined = num(f[2]) or 0 }
    order.heavier = order.extra and num(f[3]) or 0
    if order.is_shared then
      order.known = known
    end
  end
  return known.v, known.joined
end

-- v rises. In a round it is written once, at its end.
local function advance(order, v)
  if order.known then
    order.known.v, order.has_advanced = v, true
  else
    call('HSET', order.virtual, order.v, v)
  end
end

-- Weights other than 1 are kept as what they are more, in millionths, of all in the schedule: an
-- entrant came (`sign` 1) or left (-1).
local function weigh(e, weight, sign)
  local extra = math.floor((weight - 1) * 1000000 + 0.5)
  if extra ~= 0 then
    e.order.heavier = add_to(e.order.virtual, e.order.extra, sign * extra)
  end
end

-- Work was done for an order: where v would be if all that is served moved it, each by its cost /
-- the weights in the schedule. Newcomers alone do not move v, and may come without end.
local function count_work(order, used)
  local entrants = call('ZCARD', order.schedule)
  order.entrants = entrants
  if entrants > 0 then
    if not order.heavier then
      virtual_time(order)
    end
    -- No weight is under 0.001; what else would come of a store that somebody wrote to?
    local weights = math.max(entrants * 1000000 + order.heavier, entrants * 1000)
    add_to(order.virtual, order.work, math.floor(used * 1000000 / weights))
  end
end

-- How far an order has come, by its tags or by its work.
local function progress(order)
  local v, work = virtual_time(order), num(call('HGET', order.virtual, order.work)) or 0
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

-- The tag of an entrant that is in no schedule and where it stands, or nil.
local function tag_away(e)
  if e.held then
    return e.held, 'held'
  end
  local tag = tonumber(call('ZSCORE', e.order.finish, e.name))
  return tag, tag and 'remembered'
end

-- An entrant's tag and where it stands, or nil.
local function tag_of(e)
  local score = call('ZSCORE', e.order.schedule, e.name)
  if score then
    return -tonumber(score), 'scheduled'
  end
  return tag_away(e)
end

-- Write an entrant's tag where it belongs; `place` is where it stood, nil if nowhere.
local function put_tag(e, tag, place)
  local order = e.order
  if place == 'scheduled' then
    if call('ZCOUNT', order.schedule, -tag, -tag) > 0 then
      -- Its own tag is not in its way.
      call('ZREM', order.schedule, e.name)
      tag = free_tag(order, tag)
    end
    call('ZADD', order.schedule, -tag, e.name)
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
  local tag, place = tag_away(e)
  if place == 'held' then
    e.held = nil
    call('HDEL', e.hold, e.hold_field)
  elseif place == 'remembered' then
    call('ZREM', order.finish, e.name)
  end
  if not tag or tag <= v then
    tag = math.max(v, joined + 1)
    call('HSET', order.virtual, order.joined, tag)
    if order.known then
      order.known.joined = tag
    end
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
  local remembered = call('ZCARD', order.finish)
  if remembered == 0 then
    return
  end
  local v = virtual_time(order)
  local past = call('ZRANGE', order.finish, '-inf', v, 'BYSCORE', 'LIMIT', 0, 64)
  if #past > 0 then
    call('ZREM', order.finish, unpack(past))
  elseif remembered > 100000 then
    advance(order, tonumber(call('ZRANGE', order.finish, 0, 0, 'WITHSCORES')[2]))
  end
end

-- An order that is idle, with nobody in its schedule and nothing leased, forgets, so nobody pays
-- for a past rush. It begins at 0 again: past 2^53 arrivals could not be told apart.
local function rest(order)
  call('UNLINK', order.finish)
  call('HDEL', order.virtual, order.v, order.joined, order.work)
end

-- A claim takes many turns in a lane. Its round is what they share: what was read once, and what
-- is still to be written, once, when the round ends. What others would read meanwhile ends it.
local function begin_round(L)
  if not L.round then
    L.round = { turns = num(call('HGET', VIRTUAL .. L.suffix, 'turns')) or 0, taken = 0,
      pending = 0, leases = {}, inflight = {}, deadlines = {}, means = {}, orders = {} }
  end
  return L.round
end

-- A server's script may unpack some 8,000 values.
local function each_part(list, write)
  for at = 1, #list, 1000 do
    write(unpack(list, at, math.min(at + 999, #list)))
  end
end

local function write_order(order)
  if order.has_advanced then
    call('HSET', order.virtual, order.v, order.known.v)
  end
  order.known, order.is_shared, order.has_advanced = nil, nil, nil
end

local function end_round(L)
  local round, virtual = L.round, VIRTUAL .. L.suffix
  if not round then
    return
  end
  L.round = nil
  each_part(round.inflight, function(...) call('ZADD', INFLIGHT .. L.suffix, ...) end)
  each_part(round.deadlines, function(...) call('ZREM', DEADLINES, ...) end)
  if round.pending ~= 0 then
    add_to(GLOBAL_PENDING, nil, round.pending)
    add_to(virtual, 'pending', round.pending)
  end
  if round.taken > 0 then
    add_to(virtual, 'turns', round.taken)
  end
  for suffix, n in pairs(round.leases) do
    add_to(VIRTUAL .. suffix, 'leased', n)
  end
  for _, order in pairs(round.orders) do
    write_order(order)
  end
  if round.sites then
    write_order(round.sites)
  end
end
