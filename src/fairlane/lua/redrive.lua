-- Give dead tasks a new series of attempts: their counts start anew, their payload is intact.
--
-- Returns  per id: 1 when it is pending again, 0 when it was no dead letter, or nobody's
-- Errors   UNKNOWN_LANE (the lane of a dead task is gone: migrate it back, or drop the task)
-- Twice    answers 0 for what the first run brought back
-- Flags    allow-oom

for at = 2, #ARGV do
  local f = redis.pcall('HMGET', TASK .. ARGV[at], 'state', 'lane')
  if f[1] == 'dead' and f[2] and not is_lane(f[2]) then
    return fail('UNKNOWN_LANE', 'lane: ' .. f[2] .. ' of ' .. ARGV[at]
      .. ' is gone; migrate it back, or drop the task')
  end
end

local reply = {}
for at = 2, #ARGV do
  local id = ARGV[at]
  local f = redis.pcall('HMGET', TASK .. id, 'state', 'mac', 'lane', 'site')
  -- Of a corrupt one nobody may know whose it was.
  local is_dead = f[1] == 'dead' and f[3] and (f[2] or '') ~= ''
  reply[#reply + 1] = is_dead and 1 or 0
  if is_dead then
    call('LREM', DEAD_LETTER, 1, id)
    call('HDEL', TASK .. id, 'failures', 'defers', 'misses', 'paid', 'cause', 'error', 'ended_at',
      'dead_at', 'failed_attempt', 'deferred_attempt', 'site')
    -- Its age starts anew too: it would expire at once otherwise.
    local d = device(f[2], lane_of(f[3]))
    join_site(d, site_for(d, f[4] or ''))
    push(d, id, now, false)
    call('ZADD', DEADLINES, now + C.task_ttl_ms, id)
    move(id, 'dead', 'pending', 'created_at', now, 'expires_at', now + C.task_ttl_ms)
    add_to(TOTALS, 'redriven', 1)
    save(d, 1)
    if seat(d) then
      ring()
    end
    emit('redriven', d.mac, d.lane.name, id)
  end
end
return reply
