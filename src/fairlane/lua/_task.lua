-- The life of a task: its states, what is told and counted when they change, and whose word counts.

-- The same table as model.TRANSITIONS and docs/lifecycle.md.
local TRANSITIONS = {
  pending = 'leased expired cancelled dead',
  leased = 'running pending delayed expired cancelled dead',
  running = 'done failed pending delayed expired cancelled dead',
  delayed = 'pending expired cancelled dead',
  dead = 'pending',
}

-- A number that was stored, or nil for what is none: another program may have written nan or inf.
local function num(stored)
  local value = tonumber(stored)
  return value and value - value == 0 and value or nil
end

-- A count that was stored, 0 for nothing, or nil for what is no count.
local function count(stored)
  local value = stored and tonumber(stored) or 0
  if stored and not tonumber(stored) or value % 1 ~= 0 or value < 0 or value > 2 ^ 53 then
    return nil
  end
  return value
end

-- When a task expires; one whose time was spoiled begins anew, for its end must not be lost.
local function expiry(stored)
  return num(stored) or now + C.task_ttl_ms
end

-- Add to a counter, of a hash if there is a field. What is no count, or too large, begins anew: a
-- step that stops half way costs a task, a wrong count only a repair. Other errors are thrown on.
local function add_to(key, field, by)
  local sum = field and redis.pcall('HINCRBY', key, field, by) or redis.pcall('INCRBY', key, by)
  if type(sum) ~= 'table' then
    return sum
  elseif string.find(sum.err, 'WRONGTYPE', 1, true) or string.find(sum.err, 'OOM', 1, true) then
    error(sum)
  end
  sum = math.max(0, by)
  if field then
    call('HSET', key, field, sum)
  else
    call('SET', key, sum)
  end
  return sum
end

local function may_become(from, to)
  return TRANSITIONS[from] and string.find(TRANSITIONS[from], to, 1, true)
end

-- The only place that changes a state; further arguments are the record's other new fields.
local function move(id, from, to, ...)
  assert(may_become(from, to), to)
  call('HSET', TASK .. id, 'state', to, ...)
end

-- One entry of the event stream. `tasks` are ids, or id.attempt; what is empty is left out.
local function emit(event, mac, lane, tasks, detail)
  if detail then
    call('XADD', EVENTS, 'MAXLEN', '~', C.events_maxlen, '*', 'event', event, 'mac', mac,
      'lane', lane, 'tasks', tasks, 'detail', detail)
  else
    call('XADD', EVENTS, 'MAXLEN', '~', C.events_maxlen, '*', 'event', event, 'mac', mac,
      'lane', lane, 'tasks', tasks)
  end
end

-- A final state: recorded once, counted, told, and kept for result_ttl_ms (a dead one for longer).
local function conclude(id, from, to, mac, lane, detail, ...)
  move(id, from, to, 'ended_at', now, ...)
  add_to(TOTALS, to, 1)
  emit(to, mac, lane, id, detail)
  if to ~= 'dead' then
    call('PEXPIRE', TASK .. id, C.result_ttl_ms)
  end
end

local function not_found(id)
  return fail('TASK_NOT_FOUND', 'task_id: ' .. id .. ' is unknown, or its retention is over')
end

-- An error unless `attempt` is the current one of a task that has not ended.
local function not_current(id, state, current, attempt)
  if not state then
    return not_found(id)
  elseif state == 'dead' or not TRANSITIONS[state] then
    return fail('TASK_ENDED', 'task_id: ' .. id .. ' is ' .. state)
  elseif current ~= attempt then
    return fail('STALE_ATTEMPT', 'task_id: attempt ' .. attempt .. ' of ' .. id
      .. ' is not the current one, ' .. (current or 'none'))
  end
end

local function not_running(id, state, attempt)
  if state ~= 'running' then
    return fail('STALE_ATTEMPT', 'task_id: attempt ' .. attempt .. ' of ' .. id .. ' is ' .. state)
  end
end
