-- Read how long tasks waited and ran, as histograms per lane.
--
-- Returns  {bounds in ms…}, {lane, its wait, dispatch, run and whole as 8-byte numbers: a count for
--          each bound, one more for what is over, the sum in ms}…
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local lanes = {}
for name in string.gmatch(C.lanes, '[^,]+') do
  local counts = call('GET', TIMES .. lane_of(name).suffix)
  if counts and #counts <= TIMES_SIZE then
    -- It is as long as what was counted last in it.
    lanes[#lanes + 1] = name
    lanes[#lanes + 1] = counts .. string.rep('\0', TIMES_SIZE - #counts)
  end
end
return { BOUNDS_MS, lanes }
