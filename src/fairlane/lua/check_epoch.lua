-- Compare the store with what this process last saw of it; a loss is recorded.
--
-- With `is_sweep` the sweep is counted too, and the next comparison expects it.
--
-- Returns  {epoch id, sweeps counted, clock, what was lost since: '', empty or older}
-- Errors   none
-- Twice    compares again: a loss is recorded once
-- Flags    allow-oom
local id, sweeps, lost = compare_epoch(ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5])

if ARGV[6] == '1' then
  sweeps = add_to(EPOCH, 'sweeps', 1)
end
return { id, sweeps, now, lost }
