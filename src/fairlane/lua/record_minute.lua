-- Record the system's level for the history, once a minute.
--
-- A row is the counts and levels at the minute's first call, the histogram of waits among them, and
-- who got how much in the 60 s before, of a sample of the events in these. A day of rows is kept.
--
-- Returns  1, or 0 when this minute has its row
-- Errors   none
-- Twice    answers 0 and changes nothing within the same minute
-- Flags    allow-oom

local minute = math.floor(now / 60000)
local slot = minute % 1440
local before = call('HGET', HISTORY, slot)
if before and tonumber(string.match(before, '^%d+')) == minute then
  return 0
end

-- Sixteen looks, spread over the minute, at 32 events each. The stream has the server's clock; of a
-- virtual one the minute ends with the last event.
local function starts()
  local latest = ARGV[1] ~= '0' and call('XREVRANGE', EVENTS, '+', '-', 'COUNT', 1)[1]
  local from = (latest and tonumber(string.match(latest[1], '^%d+')) or now) - 59999
  local found = {}
  for part = 0, 15 do
    local first = string.format('%.0f', from + part * 3750)
    local last = string.format('%.0f', from + part * 3750 + 3749)
    for _, entry in ipairs(call('XRANGE', EVENTS, first, last, 'COUNT', 32)) do
      local fields = {}
      for at = 1, #entry[2], 2 do
        fields[entry[2][at]] = entry[2][at + 1]
      end
      if fields.event == 'started' then
        found[#found + 1] = fields
      end
    end
  end
  return found
end

-- How many were first attempts, and what each device was charged: the sum, and that of squares.
local firsts, work = 0, {}
for _, event in ipairs(starts()) do
  local id, attempt = string.match(event.tasks or '', '^(.+)%.(%d+)$')
  local f = redis.pcall('HMGET', TASK .. (id or ''), 'paid')
  firsts = firsts + (attempt == '1' and 1 or 0)
  local paid, of = (num(f[1]) or UNITS_PER_MS) / UNITS_PER_MS, work[event.mac] or { 0, 0 }
  work[event.mac] = { of[1] + paid, of[2] + paid * paid }
end

-- What Jain's index is made of: the shares of the devices that had tasks for the whole minute.
local devices, shares, squares, noise = 0, 0, 0, 0
for mac, of in pairs(work) do
  local since = tonumber(call('ZSCORE', MACS, mac))
  if since and since <= now - 60000 then
    local weight = num(call('HGET', META .. mac, 'weight')) or 1
    devices, shares = devices + 1, shares + of[1] / weight
    squares, noise = squares + (of[1] / weight) ^ 2, noise + of[2] / weight ^ 2
  end
end

local row = { recorded_at = now, waits = firsts, devices = devices, shares = shares,
  squares = squares, noise = noise, pending = count(call('GET', GLOBAL_PENDING)) or 0, leased = 0,
  delayed = call('ZCARD', DELAYED), dead_letters = call('LLEN', DEAD_LETTER), refused = 0 }
local totals = call('HGETALL', TOTALS)
for at = 1, #totals, 2 do
  if string.sub(totals[at], 1, 8) == 'refused_' then
    row.refused = row.refused + (count(totals[at + 1]) or 0)
  end
end
for _, name in ipairs({ 'accepted', 'done', 'failed', 'dead', 'expired', 'cancelled' }) do
  row[name] = count(call('HGET', TOTALS, name)) or 0
end
local lanes, waited, counts = {}, {}, {}
for at = 0, #BOUNDS_MS do
  waited[at + 1] = 0
  counts[3 * at + 1], counts[3 * at + 2], counts[3 * at + 3] = 'GET', 'i64', '#' .. at
end
for name in string.gmatch(C.lanes, '[^,]+') do
  local L = lane_of(name)
  local leased = call('ZCARD', INFLIGHT .. L.suffix)
  lanes[name] = { count(call('HGET', VIRTUAL .. L.suffix, 'pending')) or 0, leased,
    count(call('HGET', CAPACITY, 'slots:' .. name)) or 0 }
  row.leased = row.leased + leased
  for at, n in ipairs(call('BITFIELD', TIMES .. L.suffix, unpack(counts))) do
    -- What another program wrote there is no count.
    waited[at] = waited[at] + (n >= 0 and n < 10 ^ 12 and n or 0)
  end
end
row.lanes, row.waited = lanes, waited
call('HSET', HISTORY, slot, string.format('%d %s', minute, cjson.encode(row)))
return 1
