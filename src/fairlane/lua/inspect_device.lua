-- Read a device: what it has pending, since when, its rank and why it cannot go, lane by lane.
--
-- Returns  {clock, meta as field, value, …, lanes {name, queued, pending, oldest, served, rank or
--          -1, tag, backoff until or 0, turn deadline or 0}…}
-- Errors   none: an unknown device has nothing pending
-- Twice    reads again
-- Flags    no-writes
local mac = ARGV[2]

local lanes = {}
for name in string.gmatch(C.lanes, '[^,]+') do
  local L = lane_of(name)
  local d = device(mac, L)
  lanes[#lanes + 1] = {
    name, call('LLEN', d.queue), d.pending, d.oldest or 0, d.served,
    call('ZREVRANK', L.schedule, mac) or -1,
    call('ZSCORE', L.schedule, mac) or call('ZSCORE', L.finish, mac) or '0',
    tonumber(call('ZSCORE', L.backoff, mac)) or 0, tonumber(call('ZSCORE', TURNS, d.turn_id)) or 0,
  }
end
return { now, call('HGETALL', META .. mac), lanes }
