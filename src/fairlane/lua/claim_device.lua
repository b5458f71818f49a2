-- Open a two-step turn for the device that is owed most, with a lock on it.
--
-- Returns  {mac, fencing token, deadline} or nil when no device can go
-- Errors   none
-- Twice    opens another device's turn: not to be sent again; the sweep ends an orphan
-- Flags    allow-oom
local L, exclude_mac = lane_of(ARGV[2]), ARGV[3]

resume(L, 64)
begin_round(L)
local d = next_device(L, exclude_mac)
end_round(L)
if not d then
  return nil
end
leave(d)
local token = add_to(VIRTUAL .. L.suffix, 'tokens', 1)
local deadline = now + C.turn_lease_ms
call('SET', active_key(d), token, 'PX', C.active_ttl_ms)
call('ZADD', TURNS, deadline, d.turn_id)
emit('turn_opened', d.mac, L.name, '', token)
return { d.mac, token, deadline }
