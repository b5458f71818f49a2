-- Take a process out of those announced when it stops.
--
-- Returns  1, or 0 when it was gone already
-- Errors   none
-- Twice    answers 0 and changes nothing
-- Flags    allow-oom
call('DEL', PROCESS .. ARGV[2])
return call('ZREM', PROCESSES, ARGV[2])
