-- Store many tasks in one step, with a verdict for each.
--
-- Returns  the clock, then per task: the device's pending tasks after it (accepted), or
--          {'known', created_at, state}, {'refused', reason, pending, limit, retry_after_ms},
--          {'conflict', task_id}
-- Errors   none: a task that cannot be stored does not stop its neighbours
-- Twice    answers `known` for what the first run stored: a re-send is safe

local global = tonumber(call('GET', GLOBAL_PENDING)) or 0
local crossed, lanes, wholes, order = 0, {}, {}, {}
local function meet(mac, name)
  local lane = lanes[name] or { key = lane_of(name), devices = {} }
  local d = device(mac, lane.key, wholes[mac])
  wholes[mac], d.ids = d.whole, {}
  d.whole.coming = d.whole.coming or 0
  lanes[name], lane.devices[mac], order[#order + 1] = lane, d, d
  return d
end

local reply, deadlines, seen = { now }, {}, {}
local stamp, usual = string.format('%.0f', now), string.format('%.0f', now + C.task_ttl_ms)
for at = 2, #ARGV, 6 do
  local id, mac, task_type, lane = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local payload, ttl_ms, record = ARGV[at + 4], ARGV[at + 5], TASK .. id
  if call('EXISTS', record) == 1 then
    local f = call('HMGET', record, 'mac', 'task_type', 'payload', 'created_at', 'state')
    local same = f[1] == mac and f[2] == task_type and f[3] == payload
    reply[#reply + 1] = same and { 'known', tonumber(f[4]), f[5] } or { 'conflict', id }
  else
    local d = lanes[lane] and lanes[lane].devices[mac] or meet(mac, lane)
    local count = d.whole.total + d.whole.coming
    local reason, pending, limit = refusal(count, global, crossed)
    if reason then
      seen[reason] = (seen[reason] or 0) + 1
      reply[#reply + 1] = { 'refused', reason, pending, limit,
        retry_after_ms(reason, pending, limit) }
    else
      local expires = ttl_ms == '0' and usual or string.format('%.0f', now + ttl_ms)
      call('HSET', record, 'state', 'pending', 'mac', mac, 'task_type', task_type, 'lane', lane,
        'payload', payload, 'created_at', stamp, 'expires_at', expires)
      deadlines[#deadlines + 1], deadlines[#deadlines + 2] = expires, id
      d.ids[#d.ids + 1] = id
      d.whole.coming, global = d.whole.coming + 1, global + 1
      crossed = crossed + (count == C.max_per_mac_pending and 1 or 0)
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
    local queued = call('RPUSH', d.queue, unpack(d.ids))
    d.oldest = older(d.oldest, now)
    save(d, #d.ids)
    if queued == #d.ids and seat(d) then
      ring()
    end
    emit('accepted', d.mac, d.lane.name, table.concat(d.ids, ' '))
  end
end
return reply
