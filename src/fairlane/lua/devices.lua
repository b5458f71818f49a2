-- List the devices that have pending tasks, the longest backlogged first.
--
-- Returns  mac, pending, … with the pending tasks of all lanes
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local offset, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local devices = {}
for _, mac in ipairs(call('ZRANGE', MACS, offset, offset + limit - 1)) do
  devices[#devices + 1] = mac
  devices[#devices + 1] = num(call('HGET', META .. mac, 'pending_count')) or 0
end
return devices
