-- Read the announced processes: role, release, settings; and which dispatcher leads.
--
-- Returns  {clock, leader or '', processes {id, deadline, row as field, value, …}…}, at most 1,000
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local processes = {}
local rows = call('ZRANGE', PROCESSES, 0, 999, 'WITHSCORES')
for at = 1, #rows, 2 do
  processes[#processes + 1] =
    { rows[at], tonumber(rows[at + 1]), call('HGETALL', PROCESS .. rows[at]) }
end
return { now, call('GET', LEADER) or '', processes }
