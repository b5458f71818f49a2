-- Take note that the store came back empty or older, so that it is not told any more.
--
-- Returns  1, or 0 when there was nothing to take note of
-- Errors   none
-- Twice    answers 0 and changes nothing
-- Flags    allow-oom
if call('HDEL', EPOCH, 'lost', 'lost_at') == 0 then
  return 0
end
call('HSET', EPOCH, 'acknowledged_at', now)
return 1
