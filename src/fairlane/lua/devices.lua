-- List the devices that have pending tasks, the most laden first.
--
-- Returns  mac, pending, …
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local offset, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
return call('ZREVRANGE', MACS, offset, offset + limit - 1, 'WITHSCORES')
