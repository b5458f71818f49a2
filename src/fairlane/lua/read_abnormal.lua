-- Read abnormal data, oldest first, and leave it there.
--
-- Returns  records as they came
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local offset, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
return call('LRANGE', ABNORMAL, offset, offset + limit - 1)
