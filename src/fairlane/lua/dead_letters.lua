-- List dead letters, newest first.
--
-- Returns  records, each as field, value, … with its task_id first
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local offset, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local letters = {}
for _, id in ipairs(call('LRANGE', DEAD_LETTER, offset, offset + limit - 1)) do
  local record = redis.pcall('HGETALL', TASK .. id)
  if not record.err and #record > 0 then
    table.insert(record, 1, id)
    letters[#letters + 1] = record
  end
end
return letters
