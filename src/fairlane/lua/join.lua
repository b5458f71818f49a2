-- Agree on the configuration: the first process writes it, later ones adopt it or are refused.
--
-- Returns  the stored configuration, as field, value, …
-- Errors   CONFIG_MISMATCH (this process insists on another value; both are named)
-- Twice    reads the same configuration
-- Flags    allow-oom
local insists = tonumber(ARGV[2])
local stored = call('EXISTS', CONFIG) == 1

for at = 3, 2 + 2 * insists, 2 do
  local known = stored and call('HGET', CONFIG, ARGV[at])
  if known and known ~= ARGV[at + 1] then
    return fail('CONFIG_MISMATCH', ARGV[at] .. ': this process says ' .. ARGV[at + 1]
      .. ', the store says ' .. known .. '; change one, or run `fairlane migrate`')
  end
end
for at = 3 + 2 * insists, #ARGV, 2 do
  call('HSETNX', CONFIG, ARGV[at], ARGV[at + 1])
end
return call('HGETALL', CONFIG)
