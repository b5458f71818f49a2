-- Read the workers: what each offers, how loaded it is, and why it offers nothing.
--
-- Returns  {clock, workers {id, deadline, row as field, value, …}…}, at most 1,000
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local workers = {}
local rows = call('ZRANGE', WORKERS, 0, 999, 'WITHSCORES')
for at = 1, #rows, 2 do
  workers[#workers + 1] = { rows[at], tonumber(rows[at + 1]), call('HGETALL', WORKER .. rows[at]) }
end
return { now, workers }
