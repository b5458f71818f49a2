-- Receipts of idempotency keys: one key is one task for idempotency_ttl_ms, whoever sends it again.
-- `given` is the hash of the key in its caller's scope, 32 digits, and then that of the body; ''
-- when no key came, which costs nothing.

-- Forget up to `limit` receipts that are over.
local function reap_receipts(limit)
  local due = call('ZRANGE', RECEIPTS_DUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
  if #due > 0 then
    call('HDEL', RECEIPTS, unpack(due))
    call('ZREM', RECEIPTS_DUE, unpack(due))
  end
  return #due
end

-- Another program may have taken a receipt's end away: look at some receipts when there are more
-- than ends, and give those without one theirs again.
local function mend_receipts()
  if call('HLEN', RECEIPTS) <= call('ZCARD', RECEIPTS_DUE) then
    return
  end
  local some = call('HRANDFIELD', RECEIPTS, 100, 'WITHVALUES')
  for at = 1, #some, 2 do
    if not call('ZSCORE', RECEIPTS_DUE, some[at]) then
      local deadline = num(string.match(some[at + 1], '^(%d+) ')) or now
      call('ZADD', RECEIPTS_DUE, deadline, some[at])
    end
  end
end

-- The receipt of a key, or nil: the task, when it was accepted, its state ('' when its record's
-- retention is over), and whether it came with the same body.
local function receipt_for(given)
  local stored = given ~= '' and call('HGET', RECEIPTS, string.sub(given, 1, 32))
  if not stored then
    return nil
  end
  local deadline, created, body, id = string.match(stored, '^(%d+) (%d+) (%x+) (.+)$')
  if not deadline or now >= tonumber(deadline) then
    return nil
  end
  return { id = id, created = tonumber(created), same = body == string.sub(given, 33),
    state = call('HGET', TASK .. id, 'state') or '' }
end

-- Why no receipt can be kept now, as `refusal` says it, or nil. There is room for one where one is
-- over.
local function receipt_refusal(given)
  if given == '' then
    return nil
  end
  reap_receipts(2)
  local count = call('ZCARD', RECEIPTS_DUE)
  if count >= C.idempotency_cap and not call('ZSCORE', RECEIPTS_DUE, string.sub(given, 1, 32)) then
    return 'idempotency_full', count, C.idempotency_cap, C.idempotency_cap - 1
  end
end

local function keep_receipt(given, id, created)
  if given ~= '' then
    local key = string.sub(given, 1, 32)
    local deadline = string.format('%.0f', now + C.idempotency_ttl_ms)
    call('HSET', RECEIPTS, key, deadline .. string.format(' %.0f ', created)
      .. string.sub(given, 33) .. ' ' .. id)
    call('ZADD', RECEIPTS_DUE, deadline, key)
  end
end
