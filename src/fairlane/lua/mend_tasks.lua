-- Put tasks where their records say that they are.
--
-- Returns  {how many were looked at, what was wrong, as {task_id, what, stored, right}…}
-- Errors   none
-- Twice    changes nothing
-- Flags    allow-oom
local mac, lane, flaws, spent, looked = ARGV[2], ARGV[3], {}, 0, 0
local queue = mac ~= '' and QUEUE .. mac .. lane_of(lane).suffix
  or lane == 'dead_letter' and DEAD_LETTER or nil

-- Lists are looked through, which takes as long as they are: 100,000 entries in all, or one task.
local devices = {}
for at = 4, #ARGV do
  if spent < 100000 then
    local found, of
    found, spent, of = mend_task(ARGV[at], queue, spent)
    looked = looked + 1
    for _, flaw in ipairs(found) do
      flaws[#flaws + 1] = flaw
    end
    if #found > 0 then
      -- Whose queue it was in, and whose it is.
      devices[mac], devices[of or mac] = true, true
    end
  end
end
devices[''] = nil
local counts = next(devices) and read_counts()
for device_mac in pairs(devices) do
  for _, flaw in ipairs(mend_device(device_mac, counts, '')) do
    flaws[#flaws + 1] = flaw
  end
end
return { looked, flaws }
