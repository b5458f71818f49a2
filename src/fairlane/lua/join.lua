-- Agree on the configuration: the first process writes it, later ones adopt it or are refused.
--
-- `seen` is what this process last saw of the store's epoch; an empty store begins one.
--
-- Returns  {the stored configuration as field, value, …, epoch id, sweeps counted, clock, what was
--          lost since it was seen: '', empty or older}
-- Errors   CONFIG_MISMATCH (this process insists on another value; both are named)
-- Twice    reads the same configuration
-- Flags    allow-oom
local seen_id, seen_sweeps, seen_at, nonce = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local insists = tonumber(ARGV[6])
local stored = call('EXISTS', CONFIG) == 1

for at = 7, 6 + 2 * insists, 2 do
  local known = stored and call('HGET', CONFIG, ARGV[at])
  if known and known ~= ARGV[at + 1] then
    return fail('CONFIG_MISMATCH', ARGV[at] .. ': this process says ' .. ARGV[at + 1]
      .. ', the store says ' .. known .. '; change one, or run `fairlane migrate`')
  end
end
local id, sweeps, lost = compare_epoch(seen_id, seen_sweeps, seen_at, nonce)
for at = 7 + 2 * insists, #ARGV, 2 do
  call('HSETNX', CONFIG, ARGV[at], ARGV[at + 1])
end
return { call('HGETALL', CONFIG), id, sweeps, now, lost }
