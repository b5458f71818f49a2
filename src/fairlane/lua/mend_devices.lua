-- Mend devices whose counts, places or tags do not equal their lists.
--
-- Returns  what was wrong, as {mac, what, stored, right}…
-- Errors   none
-- Twice    changes nothing
-- Flags    allow-oom
local site, counts, flaws = ARGV[2], read_counts(), {}
for at = 3, #ARGV do
  for _, flaw in ipairs((mend_device(ARGV[at], counts, site))) do
    flaws[#flaws + 1] = flaw
  end
end
return flaws
