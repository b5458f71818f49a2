-- Read every lane: pending, leased, slots, credits, and who is next.
--
-- Returns  lanes {name, pending, scheduled, leased, slots, credits, backoffs, throttled, sites, v,
--          devices that can go and starve, how long the first of them has waited in ms, next mac
--          or ''}
-- Errors   none
-- Twice    reads again
-- Flags    no-writes

local lanes = {}
for name in string.gmatch(C.lanes, '[^,]+') do
  local L = lane_of(name)
  local site = call('ZREVRANGE', SITES .. L.suffix, 0, 0)[1] or 'default'
  local order = order_of_devices(L, site)
  local waiting = WAITING .. L.suffix
  local longest = tonumber(call('ZRANGE', waiting, 0, 0, 'WITHSCORES')[2]) or now
  lanes[#lanes + 1] = {
    name, num(call('HGET', VIRTUAL .. L.suffix, 'pending')) or 0,
    call('ZCARD', waiting), call('ZCARD', INFLIGHT .. L.suffix),
    num(call('HGET', CAPACITY, 'slots:' .. name)) or 0, credits(L),
    call('ZCARD', BACKOFF .. L.suffix), call('ZCARD', THROTTLED .. L.suffix),
    call('ZCARD', SITES .. L.suffix), string.format('%.0f', (virtual_time(order))),
    call('ZCOUNT', waiting, '-inf', now - C.starvation_after_ms), math.max(0, now - longest),
    call('ZREVRANGE', order.schedule, 0, 0)[1] or '',
  }
end
return lanes
