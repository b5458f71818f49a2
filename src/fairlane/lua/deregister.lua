-- Take a worker's offer away when it stops.
--
-- Returns  1, or 0 when it was gone already
-- Errors   none
-- Twice    answers 0 and changes nothing
-- Flags    allow-oom
local worker = ARGV[2]

if call('ZREM', WORKERS, worker) == 0 then
  return 0
end
call('DEL', WORKER .. worker)
count_slots()
emit('worker_gone', '', '', '', worker)
return 1
