-- Change the stored configuration; after a change of policy or lanes, reconcile every device.
--
-- A new policy empties the schedules at once, so that tags of two policies never share a set, and
-- `reconcile` seats the devices again in bounded steps.
--
-- Returns  the names of the changed fields
-- Errors   LANE_IN_USE (a lane that is to go still has tasks)
-- Twice    changes nothing
-- Flags    allow-oom
local fields, lanes = {}, ''
for at = 2, #ARGV, 2 do
  fields[#fields + 1] = { ARGV[at], ARGV[at + 1] }
  lanes = ARGV[at] == 'lanes' and ARGV[at + 1] or lanes
end

local policy_before = call('HGET', CONFIG, 'policy')
local kept, gone = ',' .. lanes .. ',', {}
for name in string.gmatch(call('HGET', CONFIG, 'lanes') or '', '[^,]+') do
  if not string.find(kept, ',' .. name .. ',', 1, true) then
    local L = lane_of(name)
    local tasks = num(call('HGET', VIRTUAL .. L.suffix, 'pending')) or 0
    if tasks > 0 or call('ZCARD', INFLIGHT .. L.suffix) > 0 then
      return fail('LANE_IN_USE', 'lanes: ' .. name .. ' still has tasks; drain it first')
    end
    gone[#gone + 1] = L
  end
end

local changed = {}
for _, field in ipairs(fields) do
  if call('HGET', CONFIG, field[1]) ~= field[2] then
    call('HSET', CONFIG, field[1], field[2])
    changed[#changed + 1] = field[1]
  end
end
for _, L in ipairs(gone) do
  -- A lane without tasks has few backoffs: those of devices whose tasks were cancelled meanwhile.
  for _, mac in ipairs(call('ZRANGE', BACKOFF .. L.suffix, 0, 9999)) do
    call('HDEL', META .. mac, L.field .. 'unschedulable_until')
  end
  call('UNLINK', BACKOFF .. L.suffix, THROTTLED .. L.suffix, VIRTUAL .. L.suffix, TIMES .. L.suffix)
end
if policy_before and policy_before ~= call('HGET', CONFIG, 'policy') then
  for name in string.gmatch(lanes, '[^,]+') do
    -- Virtual times stay: tags of what is leased now are settled against them.
    local suffix = lane_of(name).suffix
    for _, site in ipairs(call('ZRANGE', SITES .. suffix, 0, -1)) do
      local own = suffix .. '@' .. site
      call('UNLINK', SCHEDULE .. own, FINISH .. own)
      call('HDEL', VIRTUAL .. own, 'extra')
      if (num(call('HGET', VIRTUAL .. own, 'leased')) or 0) == 0 then
        call('UNLINK', VIRTUAL .. own)
      end
    end
    call('UNLINK', SCHEDULE .. suffix, WAITING .. suffix, FINISH .. suffix, FLOOR .. suffix,
      SITES .. suffix, SITES_FINISH .. suffix)
    call('HDEL', VIRTUAL .. suffix, 'extra')
  end
end
return changed
