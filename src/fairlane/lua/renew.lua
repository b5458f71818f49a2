-- Extend a two-step turn, and tell how large its batch may be now.
--
-- Returns  {deadline, batch, 1 if another device is starved}
-- Errors   TURN_LOST (the token is not that of the device's open turn)
-- Twice    extends it again from the later clock
-- Flags    allow-oom
local d, token = device(ARGV[2], lane_of(ARGV[3])), ARGV[4]

local lost = turn_lost(d, token)
if lost then
  return lost
end
local deadline = now + C.turn_lease_ms
call('SET', active_key(d), token, 'PX', C.active_ttl_ms)
call('ZADD', TURNS, deadline, d.turn_id)
local starving = starved(d.lane, d.mac)
local batch = math.min(starving and C.min_batch_size or C.batch_size, allowance(d))
return { deadline, batch, starving and 1 or 0 }
