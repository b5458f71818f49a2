-- Read a device: what it has pending, since when, its rank and why it cannot go, lane by lane.
--
-- Returns  {clock, meta as field, value, …, lanes {name, queued, pending, leased, oldest, served,
--          rank or -1, tag, backoff until or 0, turn deadline or 0, next token or 0}…, site}
-- Errors   none: an unknown device has nothing pending
-- Twice    reads again
-- Flags    no-writes
local mac = ARGV[2]

local lanes, site = {}, 'default'
for name in string.gmatch(C.lanes, '[^,]+') do
  local L = lane_of(name)
  local d = device(mac, L)
  lanes[#lanes + 1] = {
    name, call('LLEN', d.queue), d.pending, d.leased, d.oldest or 0, d.served,
    call('ZREVRANK', place_of(d).schedule, mac) or -1, string.format('%.0f', (tag_of(d)) or 0),
    tonumber(call('ZSCORE', BACKOFF .. L.suffix, mac)) or 0,
    tonumber(call('ZSCORE', TURNS, d.turn_id)) or 0,
    -- One that has a token by now is let in by the next claim or sweep; until then it is held.
    tonumber(call('ZSCORE', THROTTLED .. L.suffix, mac)) or token_due(d) or 0,
  }
  site = d.site
end
return { now, call('HGETALL', META .. mac), lanes, site }
