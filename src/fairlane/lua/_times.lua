-- How long tasks waited and ran: histograms, one string of 8-byte counts per lane.
--
-- A string takes its eight sums in one BITFIELD; a hash, with a field for each, cost a finish four
-- times that. An attempt counts when it ends, a task when it does.

-- The bounds of the buckets; one more has what is over the last, and after it stands the sum in ms.
-- With other bounds the counts that stand mean other things: then the key needs another name.
local BOUNDS_MS = {
  2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 300000, 1800000,
}

-- The bytes of a lane's four: wait, dispatch, run, whole.
local TIMES_SIZE = 4 * 8 * #BOUNDS_MS + 64

-- Put to the operations of a BITFIELD what counts a time in the histogram `at` (from 0).
local function count_time(operations, at, ms)
  local last, n, first = #BOUNDS_MS, #operations, at * (#BOUNDS_MS + 2)
  local bucket = last
  for place = 1, last do
    if ms <= BOUNDS_MS[place] then
      bucket = place - 1
      break
    end
  end
  operations[n + 1], operations[n + 2] = 'INCRBY', 'i64'
  operations[n + 3], operations[n + 4] = '#' .. first + bucket, 1
  operations[n + 5], operations[n + 6] = 'INCRBY', 'i64'
  operations[n + 7] = '#' .. first + last + 1
  operations[n + 8] = math.max(0, math.min(2 ^ 53, math.floor(ms)))
end

-- Count an attempt that ended at `ended`; `is_first` when the task had not been started before,
-- which ends its wait, and `is_end` when the task ended with it.
local function count_times(L, created, claimed, started, ended, is_first, is_end)
  created, claimed, started = num(created), num(claimed), num(started)
  if not (created and claimed and started) then
    return
  end
  local operations = {}
  count_time(operations, 1, started - claimed)
  count_time(operations, 2, ended - started)
  if is_first then
    count_time(operations, 0, claimed - created)
  end
  if is_end then
    count_time(operations, 3, ended - created)
  end
  for _, counted in ipairs(call('BITFIELD', TIMES .. L.suffix, unpack(operations))) do
    if counted < 0 or counted > 2 ^ 53 then
      -- Another program wrote there: the counts begin anew.
      call('DEL', TIMES .. L.suffix)
      call('BITFIELD', TIMES .. L.suffix, unpack(operations))
      break
    end
  end
end
