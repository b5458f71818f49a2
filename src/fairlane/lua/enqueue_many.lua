-- Store many tasks in one step, with a verdict for each.
--
-- They come in groups: type, lane, ttl_ms, cost_ms, site, n, then n times id, mac, payload; with -n
-- for n, each has a receipt for its idempotency key too.
-- Returns  the clock, then per task: the device's pending tasks after it (accepted), or
--          {'known', created_at, state or '', task_id}, {'conflict', task_id} of the id,
--          {'mismatch', task_id} of the key, {'refused', reason, pending, limit, retry_after_ms}
-- Errors   none: a task that cannot be stored does not stop its neighbours
-- Twice    answers `known` for what the first run stored: a re-send is safe

local levels, lanes, wholes, order = read_levels(), {}, {}, {}
local function meet(mac, name)
  local lane = lanes[name] or { L = lane_of(name), devices = {} }
  local d = device(mac, lane.L, wholes[mac])
  wholes[mac], d.ids = d.whole, {}
  d.whole.coming = d.whole.coming or 0
  lanes[name], lane.devices[mac], order[#order + 1] = lane, d, d
  return d
end

local reply, deadlines, refused = { now }, {}, {}
local stamp, usual = string.format('%.0f', now), string.format('%.0f', now + C.task_ttl_ms)
local at = 2
for _ = 1, #ARGV do
  if at > #ARGV then
    break
  end
  local task_type, lane, ttl_ms, cost_ms = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local given_site, first, n = ARGV[at + 4], at + 6, tonumber(ARGV[at + 5])
  local width = n < 0 and 4 or 3
  local expires = ttl_ms == '0' and usual or string.format('%.0f', now + ttl_ms)
  at = first + width * math.abs(n)
  for item = first, at - 1, width do
    local id, mac, payload = ARGV[item], ARGV[item + 1], ARGV[item + 2]
    local given = width == 4 and ARGV[item + 3] or ''
    local record, receipt = TASK .. id, receipt_for(given)
    if receipt then
      reply[#reply + 1] = receipt.same
        and { 'known', receipt.created, receipt.state, receipt.id } or { 'mismatch', receipt.id }
    elseif call('EXISTS', record) == 1 then
      local f = call('HMGET', record, 'mac', 'task_type', 'payload', 'created_at', 'state')
      local same = f[1] == mac and f[2] == task_type and f[3] == payload
      local reason, count, limit, low
      if same then
        reason, count, limit, low = receipt_refusal(given)
      end
      if reason then
        refused[reason] = (refused[reason] or 0) + 1
        reply[#reply + 1] = { 'refused', reason, count, limit, retry_after_ms(reason, count, low) }
      elseif same then
        keep_receipt(given, id, f[4])
        reply[#reply + 1] = { 'known', num(f[4]), f[5], id }
      else
        reply[#reply + 1] = { 'conflict', id }
      end
    else
      local d = lanes[lane] and lanes[lane].devices[mac] or meet(mac, lane)
      local whole, site = d.whole, d.whole.site or site_for(d, given_site)
      local count = whole.total + whole.coming
      local reason, pending, limit, low = receipt_refusal(given)
      if not reason then
        reason, pending, limit, low = refusal(levels, d, site, count)
      end
      if reason then
        refused[reason] = (refused[reason] or 0) + 1
        reply[#reply + 1] = { 'refused', reason, pending, limit,
          retry_after_ms(reason, pending, low) }
      else
        call('HSET', record, 'state', 'pending', 'mac', mac, 'task_type', task_type, 'lane', lane,
          'payload', payload, 'created_at', stamp, 'expires_at', expires)
        if cost_ms ~= '0' then
          call('HSET', record, 'cost_ms', cost_ms)
        end
        if size_class(payload) > 0 then
          call('HSET', record, 'size', size_class(payload))
        end
        keep_receipt(given, id, now)
        deadlines[#deadlines + 1], deadlines[#deadlines + 2] = expires, id
        d.ids[#d.ids + 1] = id
        whole.site, whole.coming = site, whole.coming + 1
        count_accepted(levels, site, count)
        reply[#reply + 1] = count + 1
      end
    end
  end
end

for reason, count in pairs(refused) do
  add_to(TOTALS, 'refused_' .. reason, count)
end
if #deadlines > 0 then
  call('ZADD', DEADLINES, unpack(deadlines))
  add_to(TOTALS, 'accepted', #deadlines / 2)
end
for _, d in ipairs(order) do
  if #d.ids > 0 then
    join_site(d, d.whole.site)
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
