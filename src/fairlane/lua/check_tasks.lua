-- Find tasks that are not where their records say.
--
-- Returns  {how many were looked at, flaws {task_id, what, stored, right}…}
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local mac, lane, flaws, spent, looked = ARGV[2], ARGV[3], {}, 0, 0
local queue = mac ~= '' and QUEUE .. mac .. lane_of(lane).suffix
  or lane == 'dead_letter' and DEAD_LETTER or nil

-- Lists are looked through, which takes as long as they are: 100,000 entries in all, or one task.
for at = 4, #ARGV do
  if spent < 100000 then
    local found
    found, spent = audit_task(ARGV[at], queue, spent)
    looked = looked + 1
    for _, flaw in ipairs(found) do
      flaws[#flaws + 1] = flaw
    end
  end
end
return { looked, flaws }
