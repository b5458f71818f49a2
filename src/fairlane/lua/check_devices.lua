-- Find what is wrong with devices: counts, places and tags that do not equal their lists.
--
-- Returns  flaws {mac, what, stored, right}…
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local site, counts, flaws = ARGV[2], read_counts(), {}
for at = 3, #ARGV do
  for _, flaw in ipairs((audit_device(ARGV[at], counts, site))) do
    flaws[#flaws + 1] = flaw
  end
end
return flaws
