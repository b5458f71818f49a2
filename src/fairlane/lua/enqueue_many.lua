-- Store many tasks in one step, with a verdict for each.
--
-- Returns  the clock, then per task: the device's pending tasks after it (accepted), or
--          {'known', created_at, state}, {'refused', reason, pending, limit, retry_after_ms},
--          {'conflict', task_id}
-- Errors   none: a task that cannot be stored does not stop its neighbours
-- Twice    answers `known` for what the first run stored: a re-send is safe
config('admission', 'max_total_pending', 'task_ttl_ms')

local global = tonumber(call('GET', GLOBAL_PENDING)) or 0
local lanes, wholes, devices, order = {}, {}, {}, {}
local function device_of(mac, lane)
  local key = lane .. '|' .. mac
  if not devices[key] then
    lanes[lane] = lanes[lane] or lane_of(lane)
    local d = device(mac, lanes[lane], wholes[mac])
    wholes[mac] = d.whole
    d.whole.coming, d.ids = d.whole.coming or 0, {}
    devices[key], order[#order + 1] = d, d
  end
  return devices[key]
end

local reply, deadlines, seen = { now }, {}, {}
for at = 2, #ARGV, 6 do
  local id, mac, task_type, lane = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local payload, ttl_ms = ARGV[at + 4], tonumber(ARGV[at + 5])
  local known = call('HMGET', TASK .. id, 'mac', 'task_type', 'payload', 'created_at', 'state')
  if known[1] then
    local same = known[1] == mac and known[2] == task_type and known[3] == payload
    reply[#reply + 1] = same and { 'known', tonumber(known[4]), known[5] } or { 'conflict', id }
  else
    local d = device_of(mac, lane)
    local count = d.whole.total + d.whole.coming
    local reason, pending, limit = refusal(count, global)
    if reason then
      seen[reason] = (seen[reason] or 0) + 1
      reply[#reply + 1] = { 'refused', reason, pending, limit,
        retry_after_ms(reason, pending, limit) }
    else
      local expires = now + (ttl_ms > 0 and ttl_ms or C.task_ttl_ms)
      call('HSET', TASK .. id, 'state', 'pending', 'mac', mac, 'task_type', task_type, 'lane', lane,
        'payload', payload, 'created_at', now, 'expires_at', expires)
      deadlines[#deadlines + 1], deadlines[#deadlines + 2] = expires, id
      d.ids[#d.ids + 1] = id
      d.whole.coming, global = d.whole.coming + 1, global + 1
      reply[#reply + 1] = count + 1
    end
  end
end

for reason, count in pairs(seen) do
  call('HINCRBY', TOTALS, 'refused_' .. reason, count)
end
if #deadlines > 0 then
  call('ZADD', DEADLINES, unpack(deadlines))
  call('HINCRBY', TOTALS, 'accepted', #deadlines / 2)
end
for _, d in ipairs(order) do
  if #d.ids > 0 then
    call('RPUSH', d.queue, unpack(d.ids))
    d.oldest = older(d.oldest, now)
    save(d, #d.ids)
    if seat(d) then
      ring()
    end
    emit('accepted', d.mac, d.lane.name, table.concat(d.ids, ' '))
  end
end
return reply
