-- End up to `limit` pending or delayed tasks that are past their TTL.
--
-- Returns  expired ids; none when there are no more
-- Errors   none
-- Twice    ends the next ones, or none
-- Flags    allow-oom
local limit = tonumber(ARGV[2])

local expired, cuts = {}, 0
local function expire(d, id, state)
  conclude(id, state, 'expired', d.mac, d.lane.name, '')
  call('ZREM', DEADLINES, id)
  expired[#expired + 1] = id
end

-- A device's expired tasks stand together at its queue's head, so one due id leads to the others;
-- an odd TTL stands in the middle, and only four of those are looked for a script (LREM is O(n)).
for _, id in ipairs(call('ZRANGE', DEADLINES, '-inf', '(' .. now, 'BYSCORE', 'LIMIT', 0, limit)) do
  local f = redis.pcall('HMGET', TASK .. id, 'state', 'mac', 'lane', 'created_at')
  if f[1] ~= 'pending' and f[1] ~= 'delayed' or not f[2] or not f[3] then
    -- What cannot be read, the claim that meets it sets aside.
    if f[1] ~= 'expired' then
      call('ZREM', DEADLINES, id)
    end
  else
    local d, gone = device(f[2], lane_of(f[3])), 0
    local head = f[1] == 'pending' and call('LINDEX', d.queue, 0)
    while head and #expired < limit do
      local due = tonumber(call('ZSCORE', DEADLINES, head))
      if not due or due >= now or redis.pcall('HMGET', TASK .. head, 'state')[1] ~= 'pending' then
        break
      end
      call('LPOP', d.queue)
      d.stale = true
      expire(d, head, 'pending')
      gone, head = gone + 1, call('LINDEX', d.queue, 0)
    end
    if call('ZSCORE', DEADLINES, id) and #expired < limit then
      if f[1] == 'delayed' then
        call('ZREM', DELAYED, id)
        expire(d, id, 'delayed')
        gone = gone + 1
      elseif cuts < 4 then
        cuts = cuts + 1
        if unqueue(d, id, num(f[4])) then
          expire(d, id, 'pending')
          gone = gone + 1
        else
          -- It waits elsewhere, where a claim sets it aside.
          call('ZREM', DEADLINES, id)
        end
      end
    end
    save(d, -gone)
    seat(d)
  end
end
return expired
