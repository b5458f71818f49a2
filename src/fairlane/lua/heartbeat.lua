-- Report a worker: what it offers and how loaded it is; extend the leases of what it runs.
--
-- Returns  the tasks, as "id.attempt", that it should not run any more
-- Errors   none
-- Twice    reports again, from the later clock
-- Flags    allow-oom
local worker, ttl_ms, lanes, slots, gpu = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]
local active, report_from = tonumber(ARGV[7]), 8

local row = WORKER .. worker
local before = call('HMGET', row, 'lanes', 'slots', 'gpu')
local report = { 'lanes', lanes, 'slots', slots, 'gpu', gpu, 'active', active,
  'last_heartbeat', now }
for at = report_from + 2 * active, #ARGV do
  report[#report + 1] = ARGV[at]
end
call('HSET', row, unpack(report))
call('PEXPIRE', row, ttl_ms)
call('ZADD', WORKERS, now + ttl_ms, worker)
if before[1] ~= lanes or before[2] ~= slots or before[3] ~= gpu then
  count_slots()
  emit('worker', '', '', '', worker .. ' ' .. lanes .. ' ' .. slots)
  for name in string.gmatch(lanes, '[^,]+') do
    wake(lane_of(name))
  end
end

local stale = {}
for at = report_from, report_from + 2 * active - 1, 2 do
  local id, attempt = ARGV[at], ARGV[at + 1]
  -- One record that cannot be read must not silence a worker.
  local f = redis.pcall('HMGET', TASK .. id, 'state', 'attempt', 'lane', 'paid', 'started_at',
    'mac')
  if f[2] == attempt and f[1] == 'running' and f[3] then
    local L = lane_of(f[3])
    call('ZADD', INFLIGHT .. L.suffix, 'XX', 'GT', now + C.lease_ms, id)
    -- What runs past its estimate is charged while it runs.
    local past = num(f[4]) and num(f[5]) and f[6] and used_since(f[5]) - f[4] or 0
    if past > 0 then
      pay(device(f[6], L), past)
      call('HSET', TASK .. id, 'paid', string.format('%.0f', f[4] + past))
    end
  elseif f[2] ~= attempt or f[1] ~= 'leased' then
    stale[#stale + 1] = id .. '.' .. attempt
  end
end
return stale
