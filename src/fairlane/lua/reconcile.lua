-- Recount a page of devices from their lists and seat them; on a healthy store nothing changes.
--
-- Returns  {next offset or -1 at the end, macs whose counts or place were wrong}
-- Errors   none
-- Twice    changes nothing
-- Flags    allow-oom
local offset, limit = tonumber(ARGV[2]), tonumber(ARGV[3])

-- Delayed tasks count as pending; above 10,000 of them a count is raised only, never lowered.
local delayed, complete = {}, call('ZCARD', DELAYED) <= 10000
for _, id in ipairs(complete and call('ZRANGE', DELAYED, 0, -1) or {}) do
  local f = redis.pcall('HMGET', TASK .. id, 'lane', 'mac')
  local key = (f[1] or '') .. '|' .. (f[2] or '')
  delayed[key] = (delayed[key] or 0) + 1
end

local mended = {}
local page = call('ZRANGE', MACS, offset, offset + limit - 1)
for _, mac in ipairs(page) do
  local wrong, whole = false, nil
  for name in string.gmatch(C.lanes, '[^,]+') do
    local d = device(mac, lane_of(name), whole)
    whole = d.whole
    local placed = call('ZSCORE', place_of(d).schedule, mac)
    local counted = call('LLEN', d.queue) + (delayed[d.turn_id] or 0)
    if counted > d.pending or (complete and counted < d.pending) then
      save(d, counted - d.pending)
      wrong = true
    end
    seat(d)
    wrong = wrong or placed ~= call('ZSCORE', d.order.schedule, mac)
  end
  local over = whole.total > C.max_per_mac_pending
  wrong = call(over and 'SADD' or 'SREM', OVERLOADED, mac) == 1 or wrong
  if wrong then
    mended[#mended + 1] = mac
  end
end
return { #page < limit and -1 or offset + limit, mended }
