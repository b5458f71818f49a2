-- Read a task: its state, times, attempts, result or cause, and its place in the queue.
--
-- Returns  {clock, place from the end served next or -1, record as field, value, …}
-- Errors   TASK_NOT_FOUND
-- Twice    reads again
-- Flags    no-writes
local id = ARGV[2]
local record = call('HGETALL', TASK .. id)
if #record == 0 then
  return fail('TASK_NOT_FOUND', 'task_id: ' .. id .. ' is unknown, or its retention is over')
end
local f = call('HMGET', TASK .. id, 'state', 'mac', 'lane')
local place = -1
if f[1] == 'pending' then
  local queue = QUEUE .. f[2] .. lane_of(f[3]).suffix
  local at = call('LPOS', queue, id)
  place = not at and -1
    or C.order == 'lifo' and call('LLEN', queue) - 1 - at or at
end
return { now, place, record }
