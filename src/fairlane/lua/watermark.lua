-- Publish the system's level: pending tasks, devices, workers, and the measured drain rate.
--
-- Returns  the watermark as JSON
-- Errors   none
-- Twice    publishes again, from the later clock
-- Flags    allow-oom

-- RFC 3339 in UTC; scripts have no os.date (days to a civil date after Howard Hinnant).
local function rfc3339(ms)
  local days, rest = math.floor(ms / 86400000) + 719468, math.floor(ms / 1000) % 86400
  local era = math.floor(days / 146097)
  local doe = days - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524)
    - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  return string.format('%04d-%02d-%02dT%02d:%02d:%02dZ', yoe + era * 400 + (month <= 2 and 1 or 0),
    month, doy - math.floor((153 * mp + 2) / 5) + 1, math.floor(rest / 3600),
    math.floor(rest / 60) % 60, rest % 60)
end

local totals = call('HMGET', TOTALS, 'done', 'failed', 'dead', 'expired', 'cancelled')
local ended = 0
for i = 1, 5 do
  ended = ended + (tonumber(totals[i]) or 0)
end
-- Who has nothing to do is not slow: without a backlog before and now, a rate can only rise.
local waiting = count(call('GET', GLOBAL_PENDING)) or 0
local f = call('HMGET', CAPACITY, 'ended', 'ended_at', 'drained_per_hour', 'waited')
local rate, since = num(f[3]) or 0, now - (num(f[2]) or now)
if since >= 1000 then
  local measured = (ended - num(f[1])) * 3600000 / since
  if (rate > 0 and measured > rate) or (waiting > 0 and (num(f[4]) or 0) > 0) then
    rate = math.floor(rate == 0 and measured or rate + (measured - rate) * 0.3)
  end
end
if since >= 1000 or not f[2] then
  call('HSET', CAPACITY, 'ended', ended, 'ended_at', now, 'drained_per_hour', rate, 'waited',
    waiting)
end

local leased = 0
for name in string.gmatch(C.lanes, '[^,]+') do
  leased = leased + call('ZCARD', INFLIGHT .. lane_of(name).suffix)
end
local watermark = cjson.encode({
  total_pending = waiting,
  mac_count = call('ZCARD', MACS),
  active_workers = call('ZCOUNT', WORKERS, '(' .. now, '+inf'),
  overloaded_macs = call('SCARD', OVERLOADED),
  delayed = call('ZCARD', DELAYED),
  leased = leased,
  dead_letters = call('LLEN', DEAD_LETTER),
  drained_per_hour = rate,
  timestamp = rfc3339(now),
})
call('SET', WATERMARK, watermark, 'PX', C.watermark_every_ms + 5000)
return watermark
