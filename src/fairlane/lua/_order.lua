-- Who is next: the schedule's members and their order, under both policies. A claim never meets a
-- device that cannot go, because whatever stops a device takes it out in the same script.

-- `aging`: a young device ranks by its oldest task, minus (oldest × 1024 + arrival), below 0. One
-- past W_max ties with all such, so it ranks by its last turn: 2^52 - turn; one that was never
-- served goes before them, oldest first.
local SATURATED = 2 ^ 52

local function aging_score(oldest, turn, arrival)
  local young = -(oldest * 1024 + arrival % 1024)
  if now - oldest < C.aging_max_wait_ms then
    return young
  elseif turn == 0 then
    return 2 * SATURATED + young
  end
  return SATURATED - turn
end

-- Note among those served first a device with less running than it is promised, and no other.
local function set_floor(d)
  if is_below_floor(d) then
    if d.lane.round then
      d.lane.round.nobody_below = nil
    end
    call('ZADD', FLOOR .. d.lane.suffix, d.turn, d.mac)
  elseif d.min_running then
    call('ZREM', FLOOR .. d.lane.suffix, d.mac)
  end
end

-- Write a device's place: under `fair` its tag, under `aging` the score of its oldest task.
local function rank(d, tag)
  local L, oldest = d.lane, d.oldest or now
  call('ZADD', place_of(d).schedule, C.policy == 'fair' and -tag
    or aging_score(oldest, d.turn, add_to(VIRTUAL .. L.suffix, 'arrivals', 1)), d.mac)
  call('ZADD', WAITING .. L.suffix, math.max(oldest, d.served), d.mac)
  set_floor(d)
end

-- When nobody of a site can go any more, or nothing is leased either, the site steps back, or it
-- and the lane forget.
local function step_back(L, name)
  if C.policy ~= 'fair' or call('ZCARD', order_of_devices(L, name).schedule) > 0 then
    return
  end
  end_round(L)
  local site = site_of(L, name)
  local tag, place = tag_of(site)
  if place == 'scheduled' then
    call('ZREM', site.order.schedule, site.name)
    put_tag(site, tag)
  elseif place == 'held' and site.leased == 0 then
    put_tag(site, tag, 'held')
  end
  if site.leased == 0 then
    if site.name == 'default' then
      rest(site.inner)
    else
      call('UNLINK', site.inner.finish, site.inner.virtual)
    end
    if call('ZCARD', site.order.schedule) == 0 and call('ZCARD', INFLIGHT .. L.suffix) == 0 then
      rest(site.order)
    end
  end
end

-- Take a device out of the schedule, if it is there.
local function leave(d)
  local order = place_of(d)
  local score = call('ZSCORE', order.schedule, d.mac)
  if score then
    if d.lane.round then
      d.lane.round.waiting = nil
    end
    call('ZREM', order.schedule, d.mac)
    call('ZREM', WAITING .. d.lane.suffix, d.mac)
    if d.min_running then
      call('ZREM', FLOOR .. d.lane.suffix, d.mac)
    end
    if C.policy == 'fair' then
      weigh(d, d.weight, -1)
      put_tag(d, -tonumber(score))
      step_back(d.lane, d.site)
    end
  end
end

-- The one rule of membership: a device is in the schedule if and only if it has a queue and is
-- neither paused, nor in backoff, nor in a two-step turn, nor at one of its limits.
local function can_go(d)
  local L = d.lane
  if d.has_queue == nil then
    d.has_queue = call('LLEN', d.queue) > 0
  end
  if d.paused or not d.has_queue or call('ZSCORE', BACKOFF .. L.suffix, d.mac)
    or call('ZSCORE', TURNS, d.turn_id)
    or d.max_running and d.whole.leased >= d.max_running then
    return false
  end
  if not d.rate then
    return true
  end
  local due = token_due(d)
  L.next_due = nil
  if due then
    call('ZADD', THROTTLED .. L.suffix, due, d.mac)
  else
    call('ZREM', THROTTLED .. L.suffix, d.mac)
  end
  return not due
end

-- Let a device into the schedule or out of it, by that rule. True when it came in.
local function seat(d)
  if not can_go(d) then
    leave(d)
    return false
  end
  local score = call('ZSCORE', place_of(d).schedule, d.mac)
  if score then
    if d.oldest ~= d.oldest_before then
      rank(d, -tonumber(score))
    else
      set_floor(d)
    end
    return false
  end
  if d.lane.round then
    d.lane.round.alone, d.lane.round.waiting, d.lane.round.nobody_starves = nil, nil, nil
  end
  if C.policy == 'fair' then
    if call('ZCARD', d.order.schedule) == 0 then
      local site = site_of(d.lane, d.site)
      call('ZADD', site.order.schedule, -start_tag(site), site.name)
    end
    rank(d, start_tag(d))
    weigh(d, d.weight, 1)
  else
    rank(d)
  end
  return true
end

-- A change of a limited device's leases or tokens lets it in or out in all its lanes.
local function seat_everywhere(d)
  local came_in = false
  for name in string.gmatch(C.lanes, '[^,]+') do
    local here = name == d.lane.name and d or device(d.mac, lane_of(name), d.whole)
    came_in = seat(here) or came_in
  end
  return came_in
end

-- Does any other device of the lane wait T_starve or longer? O(1): only the two first can matter.
local function starved(L, mac)
  local limit = now - C.starvation_after_ms
  if C.policy == 'aging' then
    local top = call('ZREVRANGE', SCHEDULE .. L.suffix, 0, 1, 'WITHSCORES')
    for i = 1, #top, 2 do
      local score = tonumber(top[i + 1])
      if top[i] ~= mac and (score > 0 or math.floor(-score / 1024) <= limit) then
        return true
      end
    end
  else
    local round = L.round
    if round and round.nobody_starves then
      return false
    end
    local first = call('ZRANGE', WAITING .. L.suffix, 0, 1, 'WITHSCORES')
    for i = 1, #first, 2 do
      if first[i] ~= mac and tonumber(first[i + 1]) <= limit then
        return true
      end
    end
    if round then
      -- Turns only move a device back.
      round.nobody_starves = (tonumber(first[2]) or now) > limit
    end
  end
  return false
end

-- Under `aging`, let up to 64 devices that have passed W_max join those that tie.
local function promote(L)
  local due = call('ZREVRANGEBYSCORE', SCHEDULE .. L.suffix, '(0',
    -((now - C.aging_max_wait_ms) * 1024 + 1023), 'WITHSCORES', 'LIMIT', 0, 64)
  for i = 1, #due, 2 do
    local turn = num(call('HGET', META .. due[i], L.field .. 'turn')) or 0
    local young = tonumber(due[i + 1])
    call('ZADD', SCHEDULE .. L.suffix, turn == 0 and 2 * SATURATED + young or SATURATED - turn,
      due[i])
  end
end

-- The first of an order but for `exclude` if there is a second, and its score.
local function first_of(schedule, exclude)
  local top = call('ZREVRANGE', schedule, 0, 1, 'WITHSCORES')
  local at = top[1] == exclude and top[3] and 3 or 1
  return top[at], tonumber(top[at + 1])
end

-- Of the devices with less running than they are promised, the one served longest ago.
local function next_below_floor(L)
  if L.round.nobody_below then
    return nil
  end
  local mac = call('ZRANGE', FLOOR .. L.suffix, 0, 0)[1]
  local d = mac and device(mac, L)
  if d then
    d.most = d.min_running - d.whole.leased
  end
  L.round.nobody_below = not d
  return d
end

local function next_under_aging(L, exclude_mac)
  promote(L)
  local mac = first_of(SCHEDULE .. L.suffix, exclude_mac)
  return mac and device(mac, L)
end

-- One turn in four may go, before `mac` whose turn it is, to the device longest in `waiting` past
-- T_starve, with a batch of 1, if neither its tag nor its site's is more than a task ahead.
local function next_by_guard(L, exclude_mac, mac)
  local turns = L.round.turns + L.round.taken
  local first = turns % 4 == 3 and call('ZRANGE', WAITING .. L.suffix, 0, 0, 'WITHSCORES') or {}
  if not first[1] or first[1] == mac or first[1] == exclude_mac
    or tonumber(first[2]) > now - C.starvation_after_ms then
    return nil
  end
  local d = device(first[1], L)
  local site, id = site_of(L, d.site), call('LINDEX', d.queue, C.order == 'lifo' and -1 or 0)
  local f = redis.pcall('HMGET', TASK .. id, 'task_type', 'size', 'cost_ms')
  local cost = f[1] and estimate(d, L.round.means, f[1], f[2] or 0, num(f[3])) or 1
  place_of(d)
  local ahead, site_ahead = tag_of(d) - progress(d.order), tag_of(site) - progress(site.order)
  if ahead <= cost / d.weight and site_ahead <= cost then
    d.most = 1
    return d
  end
end

-- The device whose turn it is, or nil: `d.tag` is its tag, `d.site_tag` its site's unless that is
-- alone, and `d.most` how many tasks a turn out of order may take. Only turns in order move v. The
-- lane must be in a round.
local function next_device(L, exclude_mac)
  local d = next_below_floor(L)
  if C.policy == 'aging' then
    return d or next_under_aging(L, exclude_mac)
  end
  local sites = order_of_sites(L)
  local round = L.round
  local top = round.alone and { round.alone }
    or call('ZREVRANGE', sites.schedule, 0, 1, 'WITHSCORES')
  round.alone = not top[3] and top[1]
  local at = 1
  if top[3] and exclude_mac ~= '' then
    local first = order_of_devices(L, top[1]).schedule
    at = call('ZCARD', first) == 1 and call('ZSCORE', first, exclude_mac) and 3 or 1
  end
  local order = top[1] and order_of_devices(L, top[at])
  local mac, score
  if order then
    mac, score = first_of(order.schedule, exclude_mac)
  end
  if not mac then
    -- Only a store that somebody else wrote to has a site without devices.
    return nil
  end
  d = d or next_by_guard(L, exclude_mac, mac)
  if d then
    d.tag = -tonumber(call('ZSCORE', place_of(d).schedule, d.mac))
    d.site_tag = top[3] and -tonumber(call('ZSCORE', sites.schedule, d.site))
    return d
  end
  d = device(mac, L)
  place_of(d)
  d.tag = -score
  if d.tag > virtual_time(order) then
    advance(order, d.tag)
  end
  if top[3] then
    d.site_tag = -tonumber(top[at + 1])
    if d.site_tag > virtual_time(sites) then
      advance(sites, d.site_tag)
    end
  end
  return d
end

-- How many tasks a turn may take (section 4.2), never more than `room`. Under `fair` a turn leaves
-- a credit for every device that waits.
local function batch_size(d, room)
  local size = starved(d.lane, d.mac) and C.min_batch_size or C.batch_size
  if C.policy == 'fair' then
    local round = d.lane.round
    round.waiting = round.waiting or call('ZCARD', WAITING .. d.lane.suffix)
    size = math.min(size, math.max(1, math.floor(room / round.waiting)))
  end
  return math.min(size, room, d.most or size, allowance(d))
end

-- End a one-step turn: charge it, and leave the device in the schedule or, if it cannot go on, keep
-- its tag. Nothing but the queue and the limits can have changed within the script.
local function settle_turn(d, charged)
  local L, order, fair = d.lane, place_of(d), C.policy == 'fair'
  local tag = fair and charged > 0 and d.tag + price(d, charged) or d.tag
  if d.site_tag and charged > 0 then
    put_tag(site_of(L, d.site), d.site_tag + charged, 'scheduled')
  end
  if d.has_queue == nil then
    d.has_queue = call('LLEN', d.queue) > 0
  end
  if d.has_queue and (not d.limited or can_go(d)) then
    rank(d, fair and charged > 0 and free_tag(order, tag) or tag)
  else
    call('ZREM', order.schedule, d.mac)
    call('ZREM', WAITING .. L.suffix, d.mac)
    L.round.waiting = nil
    if d.min_running then
      call('ZREM', FLOOR .. L.suffix, d.mac)
    end
    if fair then
      weigh(d, d.weight, -1)
      put_tag(d, tag)
      step_back(L, d.site)
    end
  end
  if d.limited then
    seat_everywhere(d)
  end
end

-- A new weight acts on the backlog at once: what the device is ahead of v shrinks or grows.
local function reweigh(d, before)
  if C.policy == 'fair' and before ~= d.weight then
    place_of(d)
    local v, tag, place = virtual_time(d.order), tag_of(d)
    if place == 'scheduled' then
      weigh(d, d.weight, 1)
      weigh(d, before, -1)
    end
    if tag and tag > v then
      put_tag(d, v + math.floor((tag - v) * before / d.weight), place)
    end
  end
end
