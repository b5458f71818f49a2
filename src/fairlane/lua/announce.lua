-- Announce a process and what it was started with; refuse a new one that disagrees.
--
-- Returns  1, or 0 when it was announced already
-- Errors   PROCESSES_DISAGREE (a new process; both values are named)
-- Twice    announces again, from the later clock
-- Flags    allow-oom
local process, ttl_ms = ARGV[2], tonumber(ARGV[3])
local is_new, agreed = ARGV[4] == '1', tonumber(ARGV[5])

local living = is_new and call('ZRANGE', PROCESSES, '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, 1000)
for _, other in ipairs(living or {}) do
  for at = 6, 5 + 2 * agreed, 2 do
    local theirs = other ~= process and call('HGET', PROCESS .. other, ARGV[at])
    if theirs and theirs ~= ARGV[at + 1] then
      return fail('PROCESSES_DISAGREE', ARGV[at] .. ': this process says ' .. ARGV[at + 1] .. ', '
        .. (call('HGET', PROCESS .. other, 'role') or 'process') .. ' ' .. other .. ' says '
        .. theirs .. '; give both the same, or stop that one first')
    end
  end
end

local report = { 'announced_at', now }
for at = 6, #ARGV do
  report[#report + 1] = ARGV[at]
end
call('HSET', PROCESS .. process, unpack(report))
call('PEXPIRE', PROCESS .. process, ttl_ms)
local came = call('ZADD', PROCESSES, now + ttl_ms, process)
-- What has ended without a word goes, and past 1,000 whoever was heard of longest ago.
for _, gone in ipairs(call('ZRANGE', PROCESSES, '-inf', now, 'BYSCORE', 'LIMIT', 0, 64)) do
  call('ZREM', PROCESSES, gone)
  call('DEL', PROCESS .. gone)
end
call('ZREMRANGEBYRANK', PROCESSES, 0, -1001)
call('PEXPIRE', PROCESSES, ttl_ms)
return came
