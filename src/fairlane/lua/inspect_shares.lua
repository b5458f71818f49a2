-- Read what the devices that wait have used of the workers, lane by lane.
--
-- At most `limit` devices in all: of each lane those that can go, the longest waiting first.
--
-- Returns  {lane, mac, weight, used ms since it began to wait}…
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local left, shares = tonumber(ARGV[2]), {}
for name in string.gmatch(C.lanes, '[^,]+') do
  local L = lane_of(name)
  for _, mac in ipairs(left > 0 and call('ZRANGE', WAITING .. L.suffix, 0, left - 1) or {}) do
    local f = call('HMGET', META .. mac, 'weight', L.field .. 'used_ms')
    shares[#shares + 1] = { name, mac, f[1] or '1', f[2] or '0' }
    left = left - 1
  end
end
return shares
