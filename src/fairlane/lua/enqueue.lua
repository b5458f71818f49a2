-- Store a task and put it into its device's queue, or refuse it.
--
-- Returns  {'accepted' | 'known', created_at, pending, state}, or
--          {'refused', reason, pending, limit, retry_after_ms}
-- Errors   TASK_CONFLICT (the id is taken by another task)
-- Twice    answers `known` and changes nothing: a re-send is safe
local id, mac, task_type, lane = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local payload, ttl_ms = ARGV[6], tonumber(ARGV[7])

if call('EXISTS', TASK .. id) == 1 then
  local f = call('HMGET', TASK .. id, 'mac', 'task_type', 'payload', 'created_at', 'state')
  if f[1] ~= mac or f[2] ~= task_type or f[3] ~= payload then
    return fail('TASK_CONFLICT', 'task_id: ' .. id .. ' is taken by another task; choose a new one')
  end
  return { 'known', tonumber(f[4]), 0, f[5] }
end

local d = device(mac, lane_of(lane))
local reason, pending, limit = refusal(d.whole.total, tonumber(call('GET', GLOBAL_PENDING)) or 0)
if reason then
  call('HINCRBY', TOTALS, 'refused_' .. reason, 1)
  return { 'refused', reason, pending, limit, retry_after_ms(reason, pending, limit) }
end

local expires = now + (ttl_ms > 0 and ttl_ms or C.task_ttl_ms)
call('HSET', TASK .. id, 'state', 'pending', 'mac', mac, 'task_type', task_type, 'lane', lane,
  'payload', payload, 'created_at', now, 'expires_at', expires)
call('ZADD', DEADLINES, expires, id)
call('HINCRBY', TOTALS, 'accepted', 1)
local queued = push(d, id, now, false)
save(d, 1)
if queued == 1 and seat(d) then
  ring()
end
emit('accepted', mac, lane, id)
return { 'accepted', now, d.whole.total, 'pending' }
