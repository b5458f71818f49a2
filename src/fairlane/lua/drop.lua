-- Delete dead letters for good.
--
-- Returns  per id: 1 when it is gone now, 0 when it was no dead letter
-- Errors   none
-- Twice    answers 0 for what the first run deleted
-- Flags    allow-oom

local reply = {}
for at = 2, #ARGV do
  local id = ARGV[at]
  local dead = redis.pcall('HMGET', TASK .. id, 'state')[1] == 'dead'
  if dead then
    call('LREM', DEAD_LETTER, 1, id)
    emit('dropped', call('HGET', TASK .. id, 'mac') or '', '', id)
    call('DEL', TASK .. id)
    add_to(TOTALS, 'dead_dropped', 1)
  end
  reply[#reply + 1] = dead and 1 or 0
end
return reply
