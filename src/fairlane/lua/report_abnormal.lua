-- Store abnormal data for another service to read; the oldest makes room.
--
-- Returns  {records kept, records dropped to make room}
-- Errors   none
-- Twice    stores it twice: not to be sent again

local length, dropped = 0, 0
for at = 2, #ARGV do
  length = call('RPUSH', ABNORMAL, ARGV[at])
end
if length > C.abnormal_cap then
  dropped = length - C.abnormal_cap
  call('LTRIM', ABNORMAL, dropped, -1)
  add_to(TOTALS, 'abnormal_dropped', dropped)
end
call('PEXPIRE', ABNORMAL, C.abnormal_ttl_ms)
return { length - dropped, dropped }
