-- Note how full the store's memory is; over the high mark no task is taken in.
--
-- The mark lasts `lasts_ms`: without a keeper who measures again, the server's own limit is left.
--
-- Returns  {1 if no task is taken in, percent used, 1 if that is new}
-- Errors   none
-- Twice    notes it again, from the later clock
-- Flags    allow-oom
local used, most, lasts_ms = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local was_full = call('HGET', SITES_PENDING, ':store') and true or false
local percent = most > 0 and 100 * used / most or 0
local is_full = percent > C.store_full_percent or was_full and percent > store_low_mark()
if is_full then
  local mark = string.format('%d %.0f', math.ceil(percent), now + lasts_ms)
  call('HSET', SITES_PENDING, ':store', mark)
elseif was_full then
  call('HDEL', SITES_PENDING, ':store')
end
if is_full ~= was_full then
  emit(is_full and 'store_full' or 'store_has_room', '', '', '', math.ceil(percent))
end
return { is_full and 1 or 0, math.ceil(percent), is_full ~= was_full and 1 or 0 }
