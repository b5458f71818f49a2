-- Set a device's weight or pause; active at once on its backlog.
--
-- Returns  {weight, 1 if paused}
-- Errors   none
-- Twice    changes nothing
-- Flags    allow-oom
local mac, weight, paused = ARGV[2], tonumber(ARGV[3]), ARGV[4]

local meta = META .. mac
local before = tonumber(call('HGET', meta, 'weight')) or 1
if weight == 1 then
  call('HDEL', meta, 'weight')
elseif weight then
  call('HSET', meta, 'weight', ARGV[3])
end
if paused == '0' then
  call('HDEL', meta, 'paused')
elseif paused == '1' then
  call('HSET', meta, 'paused', 1)
end
for name in string.gmatch(C.lanes, '[^,]+') do
  local d = device(mac, lane_of(name))
  if weight then
    reweigh(d, before)
  end
  if seat(d) then
    ring()
  end
end
return { call('HGET', meta, 'weight') or '1', call('HEXISTS', meta, 'paused') }
