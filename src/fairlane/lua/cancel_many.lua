-- Cancel those of many tasks that are in one of the states that are named.
--
-- Returns  per id: 1 when it is cancelled now, 0 when it is in another state, or nobody's; fewer
--          when the queues that it had to look through were longer than `look` in all
-- Errors   none
-- Twice    answers 0 for what the first run cancelled
-- Flags    allow-oom
local look, states = tonumber(ARGV[2]), ARGV[3]

local reply = {}
for at = 4, #ARGV do
  local id = ARGV[at]
  local f = redis.pcall('HMGET', TASK .. id, 'state', 'mac', 'lane', 'created_at', 'paid',
    'started_at', 'claimed_at', 'failures', 'defers', 'expires_at')
  -- What cannot be read, the claim that meets it sets aside.
  local is_meant = f[1] and string.find(states, f[1], 1, true) and TRANSITIONS[f[1]]
    and not is_flawed(f, f[2], f[3], f[4], f[10])
  if is_meant then
    local d = device(f[2], lane_of(f[3]))
    -- At an end of its queue it is found at once, in the middle by a search.
    if f[1] == 'pending' and call('LINDEX', d.queue, 0) ~= id
      and call('LINDEX', d.queue, -1) ~= id then
      look = look - d.pending
      if look < 0 and #reply > 0 then
        break
      end
    end
    call_off(d, id, f)
  end
  reply[#reply + 1] = is_meant and 1 or 0
end
return reply
