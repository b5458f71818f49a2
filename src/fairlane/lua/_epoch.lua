-- An epoch is a stretch of time in which the store lost nothing. A process that has seen more than
-- the store remembers has noticed a loss: it is recorded once, and a new epoch begins.

-- Compare the epoch with what a process last saw: its id ('' for nothing seen), the sweeps counted
-- and the clock. `nonce` names an epoch that begins here. Returns id, sweeps, and what was lost
-- since: '', 'empty' (the store began anew) or 'older' (it went back).
local function compare_epoch(seen_id, seen_sweeps, seen_at, nonce)
  local f = call('HMGET', EPOCH, 'id', 'sweeps', 'began_at', 'before', 'last_lost')
  local id, sweeps, began_at = f[1], num(f[2]) or 0, num(f[3]) or now
  local before = f[4] or ''
  if not id then
    id, began_at = nonce, now
    call('HSET', EPOCH, 'id', id, 'began_at', now)
  end
  if seen_id == '' or seen_id == id and sweeps >= seen_sweeps then
    return id, sweeps, ''
  elseif string.find(before, ',' .. seen_id .. ',', 1, true) then
    return id, sweeps, f[5] or 'older'
  end
  -- Another epoch that had begun before this process looked, but was not there then: a copy.
  local lost = (seen_id == id or began_at < seen_at) and 'older' or 'empty'
  -- Sixteen ids back is enough for a process that slept.
  before = string.sub((before == '' and ',' or before) .. seen_id .. ',', -272)
  if lost == 'older' then
    if id ~= seen_id then
      before = string.sub(before .. id .. ',', -272)
    end
    id = nonce
  end
  call('HSET', EPOCH, 'id', id, 'began_at', now, 'before', before, 'lost', lost, 'lost_at', now,
    'last_lost', lost)
  return id, sweeps, lost
end
