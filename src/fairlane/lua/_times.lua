-- How long tasks waited and ran: histograms per lane, in the hash that a finish writes anyway.
--
-- A lane's four (wait, dispatch, run, whole) are one value of 8-byte numbers: a field for each cost
-- a finish a quarter more. An attempt counts when it ends, a task when it does.

-- The bounds of the buckets; one more has what is over the last, and after it stands the sum in ms.
local BOUNDS_MS = {
  2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 300000, 1800000,
}

local NUMBERS = 8 + 4 * #BOUNDS_MS

-- Add to a packed value `by` at the place (from 0) of each pair, in their order.
local function add_packed(packed, places)
  local parts, at = {}, 1
  for i = 1, #places, 2 do
    local from = 8 * places[i] + 1
    parts[#parts + 1] = string.sub(packed, at, from - 1)
    parts[#parts + 1] = struct.pack('<I8', struct.unpack('<I8', packed, from) + places[i + 1])
    at = from + 8
  end
  parts[#parts + 1] = string.sub(packed, at)
  return table.concat(parts)
end

local function place_time(places, what, ms)
  local last = #BOUNDS_MS
  local bucket = last
  for at = 1, last do
    if ms <= BOUNDS_MS[at] then
      bucket = at - 1
      break
    end
  end
  local at, first = #places, what * (last + 2)
  places[at + 1], places[at + 2] = first + bucket, 1
  places[at + 3], places[at + 4] = first + last + 1, math.max(0, ms)
end

-- A lane's histograms with an attempt that ended at `ended`; `is_first` when the task had not been
-- started before, which ends its wait, and `is_end` when the task ended with it.
local function with_times(packed, created, claimed, started, ended, is_first, is_end)
  created, claimed = num(created), num(claimed)
  if not packed or #packed ~= 8 * NUMBERS then
    packed = string.rep('\0', 8 * NUMBERS)
  end
  if not (created and claimed and started) then
    return packed
  end
  local places = {}
  if is_first then
    place_time(places, 0, claimed - created)
  end
  place_time(places, 1, started - claimed)
  place_time(places, 2, ended - started)
  if is_end then
    place_time(places, 3, ended - created)
  end
  return add_packed(packed, places)
end

-- Count an attempt that ended otherwise than by a finish.
local function count_times(L, created, claimed, started, ended, is_first, is_end)
  local field = 'took:' .. L.name
  call('HSET', CAPACITY, field, with_times(call('HGET', CAPACITY, field), created, claimed,
    num(started), ended, is_first, is_end))
end
