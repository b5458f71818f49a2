-- Store a task and put it into its device's queue, or refuse it.
--
-- Returns  {'accepted' | 'known', created_at, pending, state}, or
--          {'refused', reason, pending, limit, retry_after_ms}
-- Errors   TASK_CONFLICT (the id is taken by another task)
-- Twice    answers `known` and changes nothing: a re-send is safe
local id, mac, task_type, lane, payload = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local ttl_ms, cost_ms, given_site = ARGV[7], ARGV[8], ARGV[9]

local record = TASK .. id
if call('EXISTS', record) == 1 then
  local f = call('HMGET', record, 'mac', 'task_type', 'payload', 'created_at', 'state')
  if f[1] ~= mac or f[2] ~= task_type or f[3] ~= payload then
    return fail('TASK_CONFLICT', 'task_id: ' .. id .. ' is taken by another task; choose a new one')
  end
  return { 'known', tonumber(f[4]), 0, f[5] }
end

local d = device(mac, lane_of(lane))
local site = site_for(d, given_site)
local reason, pending, limit, low = refusal(read_levels(), d, site, d.whole.total)
if reason then
  call('HINCRBY', TOTALS, 'refused_' .. reason, 1)
  return { 'refused', reason, pending, limit, retry_after_ms(reason, pending, low) }
end

join_site(d, site)
local expires = now + (ttl_ms == '0' and C.task_ttl_ms or tonumber(ttl_ms))
call('HSET', record, 'state', 'pending', 'mac', mac, 'task_type', task_type, 'lane', lane,
  'payload', payload, 'created_at', now, 'expires_at', expires)
if cost_ms ~= '0' then
  call('HSET', record, 'cost_ms', cost_ms)
end
if size_class(payload) > 0 then
  call('HSET', record, 'size', size_class(payload))
end
call('ZADD', DEADLINES, expires, id)
call('HINCRBY', TOTALS, 'accepted', 1)
local queued = push(d, id, now, false)
save(d, 1)
if queued == 1 and seat(d) then
  ring()
end
emit('accepted', mac, lane, id)
return { 'accepted', now, d.whole.total, 'pending' }
