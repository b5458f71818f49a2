-- Read every lane: pending, leased, slots, credits, and who is next.
--
-- Returns  lanes {name, pending, scheduled, leased, slots, credits, backoffs, v, next mac or ''}
-- Errors   none
-- Twice    reads again
-- Flags    no-writes

local lanes = {}
for name in string.gmatch(C.lanes, '[^,]+') do
  local L = lane_of(name)
  local v, _, pending = virtual_time(L)
  lanes[#lanes + 1] = {
    name, pending, call('ZCARD', L.schedule), call('ZCARD', L.inflight),
    tonumber(call('HGET', CAPACITY, 'slots:' .. name)) or 0, credits(L),
    call('ZCARD', L.backoff), string.format('%.0f', v),
    call('ZREVRANGE', L.schedule, 0, 0)[1] or '',
  }
end
return lanes
