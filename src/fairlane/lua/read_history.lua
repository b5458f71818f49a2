-- Read the history: a row for each of the last minutes that has one, oldest first.
--
-- Returns  {the bounds of the waits' histogram in ms…}, {rows, each as the minute's number and its
--          JSON…}
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local minutes = tonumber(ARGV[2])

local last, slots, rows = math.floor(now / 60000), {}, {}
for minute = last - minutes, last do
  slots[#slots + 1] = minute % 1440
end
for at, row in ipairs(call('HMGET', HISTORY, unpack(slots))) do
  -- A slot that is a day older is that of another minute.
  if row and tonumber(string.match(row, '^%d+')) == last - minutes + at - 1 then
    rows[#rows + 1] = row
  end
end
return { BOUNDS_MS, rows }
