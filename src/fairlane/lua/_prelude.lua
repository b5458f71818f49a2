-- What every script shares: the clock, the errors, the settings and the life of a task. The loader
-- puts before a verb's file, in this order: its shebang (from the file's `Flags` line), the key
-- names of `keys.py` as constants, and the shared files: this one, _device, _order, _turn.
--
-- ARGV[1] is the clock in milliseconds: 0 is the server's TIME; another value is taken only from a
-- store that carries the virtual-clock mark. Deadlines are stored numbers compared with this clock;
-- EXPIRE collects garbage and decides nothing.
--
-- A script reads, checks, returns fail(...), and only then writes: an error changes nothing.
-- Payloads are opaque bytes. Numbers above 10^14 travel as arguments of `call`, never through `..`.

local call = redis.call

local function fail(code, detail)
  return redis.error_reply(code .. ' ' .. detail)
end

local now
do
  local given = tonumber(ARGV[1])
  if given == 0 then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  elseif call('EXISTS', CLOCK) == 1 then
    now = given
  else
    error(fail('CLOCK_REFUSED', 'clock: only a store with the virtual-clock mark takes one'))
  end
end

-- The settings that shared functions read; `config` loads them and a verb's own beside them.
local C = {}

local function config(...)
  local names = { 'policy', 'order', 'max_per_mac_pending', 'aging_max_wait_ms',
    'starvation_after_ms', 'result_ttl_ms', 'events_maxlen', ... }
  local values = call('HMGET', CONFIG, unpack(names))
  if not values[1] then
    error(fail('NOT_SET_UP', 'config: the store has none; join first'))
  end
  for i, name in ipairs(names) do
    C[name] = tonumber(values[i]) or values[i]
  end
end

-- The life of a task ---------------------------------------------------------------------------

-- The same table as model.TRANSITIONS and docs/lifecycle.md.
local TRANSITIONS = {
  pending = { leased = 1, expired = 1, cancelled = 1 },
  leased = { running = 1, pending = 1, delayed = 1, expired = 1, cancelled = 1, dead = 1 },
  running = { done = 1, failed = 1, pending = 1, delayed = 1, expired = 1, cancelled = 1,
    dead = 1 },
  delayed = { pending = 1, expired = 1, cancelled = 1 },
  dead = { pending = 1 },
}

-- The only place that changes a state; further arguments are the record's other new fields.
local function move(id, from, to, ...)
  assert(TRANSITIONS[from] and TRANSITIONS[from][to], from .. ' to ' .. to)
  call('HSET', TASK .. id, 'state', to, ...)
end

local function emit(event, mac, lane, tasks, detail)
  call('XADD', EVENTS, 'MAXLEN', '~', C.events_maxlen, '*', 'event', event, 'at', now, 'mac', mac,
    'lane', lane, 'tasks', tasks, 'detail', detail or '')
end

-- A final state: recorded once, counted, told, and kept for result_ttl_ms (a dead one for longer).
local function conclude(id, from, to, mac, lane, detail, ...)
  move(id, from, to, 'ended_at', now, ...)
  call('HINCRBY', TOTALS, to, 1)
  emit(to, mac, lane, id, detail)
  if to ~= 'dead' then
    call('PEXPIRE', TASK .. id, C.result_ttl_ms)
  end
end
