-- Lease the next task of a device whose two-step turn is open.
--
-- Returns  {leased {id, attempt, type, mac, payload} or nothing, expired ids}
-- Errors   TURN_LOST (the token is not that of the device's open turn)
-- Twice    leases the device's next task: not to be sent again
-- Flags    allow-oom
local d, token, holder = device(ARGV[2], lane_of(ARGV[3])), ARGV[4], ARGV[5]

local lost = turn_lost(d, token)
if lost then
  return lost
end
begin_round(d.lane)
local leased, expired, charged, gone = take(d, math.min(1, allowance(d)), holder, C.lease_ms, false)
save(d, -gone)
end_round(d.lane)
pay(d, charged)
if d.limited and seat_everywhere(d) then
  ring()
end
return { leased, expired }
