-- Find tasks in one of the places where they are, newest first.
--
-- A place is `id` (the record of `position`), `inflight` or `queue` of a lane, `delayed`,
-- `deadlines` (all that wait), `dead`, or `ended` (the event stream). It is looked through from
-- `position` on, `look` entries at most, until `limit` tasks are found.
--
-- Returns  {looked at, where to go on or '', id of the oldest event or '', found {id, field, value,
--          …}…}
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local source, L, mac, position = ARGV[2], lane_of(ARGV[3]), ARGV[4], ARGV[5]
local look, limit, words = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[13]
local state, task_type, cause = ARGV[8], ARGV[9], ARGV[10]
local after, before, lane = tonumber(ARGV[11]), tonumber(ARGV[12]), ARGV[14]

-- The entries to look at, each {id, where to go on after it, the state that it speaks of or nil}.
local entries = {}

local function from_sorted_set(key)
  local score, member = string.match(position, '^(%S+) (.+)$')
  local rank = member and call('ZREVRANK', key, member)
  local first = rank and rank + 1 or member and call('ZCOUNT', key, '(' .. score, '+inf') or 0
  local found = call('ZREVRANGE', key, first, first + look - 1, 'WITHSCORES')
  for at = 1, #found, 2 do
    local id, its_score = found[at], found[at + 1]
    -- Of equal scores the greater names come first, and were seen.
    local was_seen = member and not rank and its_score == score and id >= member
    entries[#entries + 1] = { not was_seen and id, its_score .. ' ' .. id }
  end
end

local function from_list(key, newest_is_last)
  local first = tonumber(position) or 0
  local found = newest_is_last and call('LRANGE', key, -first - look, -first - 1)
    or call('LRANGE', key, first, first + look - 1)
  for at = 1, #found do
    entries[at] = { found[newest_is_last and #found + 1 - at or at], first + at }
  end
end

local ENDS = { done = true, failed = true, expired = true, cancelled = true }

local function from_events()
  local last = position == '' and '+' or '(' .. position
  for at, entry in ipairs(call('XREVRANGE', EVENTS, last, '-', 'COUNT', look)) do
    local fields = {}
    for i = 1, #entry[2], 2 do
      fields[entry[2][i]] = entry[2][i + 1]
    end
    local is_meant = ENDS[fields.event] and (state == '' or state == fields.event)
      and (mac == '' or mac == fields.mac)
    entries[at] = { is_meant and fields.tasks, entry[1], fields.event }
  end
end

if source == 'id' then
  entries[1] = { position, '' }
elseif source == 'queue' then
  -- Both orders put what arrives at the tail.
  from_list(QUEUE .. mac .. L.suffix, true)
elseif source == 'dead' then
  from_list(DEAD_LETTER, false)
elseif source == 'ended' then
  from_events()
else
  from_sorted_set(source == 'inflight' and INFLIGHT .. L.suffix
    or source == 'delayed' and DELAYED or DEADLINES)
end

local function says(text)
  return text and string.find(string.lower(text), words, 1, true)
end

-- An error may be long: it is read of those only that all else speaks for.
local function has_words(id, f)
  return words == '' or says(id) == 1 or says(f[2]) or says(f[3]) or says(f[4])
    or says(call('HGET', TASK .. id, 'error'))
end

local function is_meant(id, f, told)
  local created = num(f[5]) or 0
  return (state == '' or f[1] == state) and (not told or f[1] == told)
    and (mac == '' or f[2] == mac) and (task_type == '' or f[3] == task_type)
    and (cause == '' or f[4] == cause) and (lane == '' or f[6] == lane)
    and created >= after and (before == 0 or created < before)
    and has_words(id, f)
end

-- Only what is asked for is read of all that are looked at.
local ASKED = { 'state', 'mac', 'task_type', 'cause', 'created_at', 'lane' }
local FIELDS = { 'state', 'mac', 'task_type', 'cause', 'created_at', 'error', 'lane', 'expires_at',
  'attempt', 'failures', 'defers', 'claimed_at', 'started_at', 'ended_at', 'due_at', 'worker' }

local found, looked, next_position = {}, 0, position
for _, entry in ipairs(entries) do
  if #found == limit then
    break
  end
  local id, told = entry[1], entry[3]
  looked, next_position = looked + 1, entry[2]
  -- What stands there may be no record.
  local f = id and redis.pcall('HMGET', TASK .. id, unpack(ASKED))
  if f and f[1] and is_meant(id, f, told) then
    local record, values = { id }, call('HMGET', TASK .. id, unpack(FIELDS))
    for at, name in ipairs(FIELDS) do
      if values[at] then
        record[#record + 1], record[#record + 2] = name, values[at]
      end
    end
    found[#found + 1] = record
  end
end
local is_end = source == 'id' or looked == #entries and #entries < look
local oldest = source == 'ended' and call('XRANGE', EVENTS, '-', '+', 'COUNT', 1)[1]
return { looked, is_end and '' or tostring(next_position), oldest and oldest[1] or '', found }
