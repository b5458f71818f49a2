-- Store a task and put it into its device's queue, or refuse it.
--
-- Returns  {'accepted' | 'known', created_at, pending, state}, or
--          {'known', created_at, 0, state or '', task_id} by an idempotency key, or
--          {'refused', reason, pending, limit, retry_after_ms}
-- Errors   TASK_CONFLICT (the id is taken by another task), IDEMPOTENCY_CONFLICT (the key stands
--          for another body), FILE_NOT_FOUND (the file that it needs is not stored)
-- Twice    answers `known` and changes nothing: a re-send is safe
local id, mac, task_type, lane, payload = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local ttl_ms, cost_ms, given_site, given = ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local file, trace = ARGV[11], ARGV[12]

local receipt = receipt_for(given)
if receipt and not receipt.same then
  return fail('IDEMPOTENCY_CONFLICT', 'idempotency_key: it stands for task ' .. receipt.id
    .. ', which came with another body; use a new key')
elseif receipt then
  return { 'known', receipt.created, 0, receipt.state, receipt.id }
end
local record = TASK .. id
local reason, pending, limit, low
if call('EXISTS', record) == 1 then
  local f = call('HMGET', record, 'mac', 'task_type', 'payload', 'created_at', 'state')
  if f[1] ~= mac or f[2] ~= task_type or f[3] ~= payload then
    return fail('TASK_CONFLICT', 'task_id: ' .. id .. ' is taken by another task; choose a new one')
  end
  reason, pending, limit, low = receipt_refusal(given)
  if not reason then
    keep_receipt(given, id, f[4])
    return { 'known', num(f[4]), 0, f[5] }
  end
end

if file ~= '' and not call('ZSCORE', FILES, file) then
  return fail('FILE_NOT_FOUND', 'file: ' .. file .. ' is not stored; store it first')
end
local d = device(mac, lane_of(lane))
local site = site_for(d, given_site)
if not reason then
  reason, pending, limit, low = receipt_refusal(given)
end
if not reason then
  reason, pending, limit, low = refusal(read_levels(), d, site, d.whole.total)
end
if reason then
  add_to(TOTALS, 'refused_' .. reason, 1)
  return { 'refused', reason, pending, limit, retry_after_ms(reason, pending, low) }
end

-- First what is most likely another program's: a queue that is no list stops it here.
local queued = push(d, id, now, false)
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
if trace then
  call('HSET', record, 'trace', trace)
end
if file ~= '' then
  call('ZADD', FILE .. file, now, id)
end
call('ZADD', DEADLINES, expires, id)
add_to(TOTALS, 'accepted', 1)
keep_receipt(given, id, now)
save(d, 1)
if queued == 1 and seat(d) then
  ring()
end
emit('accepted', mac, lane, id)
return { 'accepted', now, d.whole.total, 'pending' }
