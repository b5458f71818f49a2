-- Read how long tasks waited and ran, as histograms per lane.
--
-- Returns  {bounds in ms…}, {lane, its wait, dispatch, run and whole as 8-byte numbers: a count for
--          each bound, one more for what is over, the sum in ms}…
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local lanes = {}
for name in string.gmatch(C.lanes, '[^,]+') do
  local packed = call('HGET', CAPACITY, 'took:' .. name)
  if packed and #packed == 8 * NUMBERS then
    lanes[#lanes + 1], lanes[#lanes + 2] = name, packed
  end
end
return { BOUNDS_MS, lanes }
