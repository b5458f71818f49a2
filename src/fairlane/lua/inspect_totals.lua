-- Read the cumulative counts: accepted, refused by reason, and how tasks ended.
--
-- Returns  {global pending, leased, delayed, dead letters, counts as name, value (nil for what is
--          none), …}
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local leased = 0
for name in string.gmatch(C.lanes, '[^,]+') do
  leased = leased + call('ZCARD', INFLIGHT .. lane_of(name).suffix)
end
local totals = call('HGETALL', TOTALS)
for at = 2, #totals, 2 do
  totals[at] = count(totals[at]) or false
end
return { count(call('GET', GLOBAL_PENDING)) or 0, leased, call('ZCARD', DELAYED),
  call('LLEN', DEAD_LETTER), totals }
