-- Choose files that no task needs any more, so that they are deleted.
--
-- Looks at `limit` files that are due, and at 100 of the tasks that named each. What was chosen ten
-- minutes ago and is still there is chosen again.
--
-- Returns  names; none when nothing is due
-- Errors   none
-- Twice    chooses the next ones, or none
-- Flags    allow-oom
local limit = tonumber(ARGV[2])

-- A task needs its file until it has ended, a dead one until it is dropped.
local function is_needed(name)
  local needed = false
  for _, id in ipairs(call('ZRANGE', FILE .. name, 0, 99)) do
    -- Of those that end, only the dead become something else again.
    if TRANSITIONS[call('HGET', TASK .. id, 'state') or ''] then
      needed = true
    else
      call('ZREM', FILE .. name, id)
    end
  end
  return needed or call('EXISTS', FILE .. name) == 1
end

local chosen = call('ZRANGE', DOOMED_FILES, '-inf', now - 600000, 'BYSCORE', 'LIMIT', 0, limit)
for _, name in ipairs(call('ZRANGE', FILES, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)) do
  if is_needed(name) then
    call('ZADD', FILES, now + math.min(C.file_ttl_ms, 300000), name)
  else
    call('ZREM', FILES, name)
    chosen[#chosen + 1] = name
  end
end
for _, name in ipairs(chosen) do
  call('ZADD', DOOMED_FILES, now, name)
end
return chosen
