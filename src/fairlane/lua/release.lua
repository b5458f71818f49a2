-- End a two-step turn and put the device back into the schedule if it has a queue.
--
-- Returns  {tasks left in the device's lane, 1 if another device is starved}
-- Errors   TURN_LOST (the token is not that of the device's open turn)
-- Twice    TURN_LOST, since the first run ended the turn: not to be sent again
-- Flags    allow-oom
local d, token = device(ARGV[2], lane_of(ARGV[3])), ARGV[4]

local lost = turn_lost(d, token)
if lost then
  return lost
end
end_turn(d)
if C.policy == 'fair' then
  reap(place_of(d))
end
return { d.pending, starved(d.lane, d.mac) and 1 or 0 }
