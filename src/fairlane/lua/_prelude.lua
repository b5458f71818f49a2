-- What every call begins with: the check that it was made for this store's settings, the clock.
-- `scripts.py` puts before it the key names that are used and the digest, and after it the shared
-- functions that are called and the verbs.
--
-- ARGV[1] is the clock in milliseconds: 0 is the server's TIME; another value is taken only from a
-- store that carries the virtual-clock mark. Deadlines are stored numbers compared with this clock;
-- EXPIRE collects garbage and decides nothing.
--
-- A verb reads, checks, returns fail(...), and only then writes: an error changes nothing. Payloads
-- are opaque bytes. Numbers above 10^14 travel as arguments of `call`, never through `..`. The
-- functions stay in the server: what one call finds out must not outlive it in an upvalue.

local call, ARGV, now

local function fail(code, detail)
  return redis.error_reply(code .. ' ' .. detail)
end

local function begin(arguments)
  call, ARGV, now = redis.call, arguments, tonumber(arguments[1])
  if DIGEST and call('HGET', CONFIG, 'digest') ~= DIGEST then
    error(fail('CONFIG_CHANGED', 'config: the store has other settings; join it anew'))
  end
  if now == 0 then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  elseif call('EXISTS', CLOCK) == 0 then
    error(fail('CLOCK_REFUSED', 'clock: only a store with the virtual-clock mark takes one'))
  end
end

-- Is a key of another type than ours? Then another program wrote it.
local function foreign(key, kind)
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then
    return fail('FOREIGN_KEY', 'key: ' .. key .. ' is a ' .. found .. ' and should be a ' .. kind
      .. '; another program wrote it: rename or delete it')
  end
end

-- The first foreign key among those that a verb may touch, each {name, type, per lane, prefix};
-- with `arguments`, also of the devices and workers that these name, and of tasks unless these are
-- left to the verb, which may know what to do with one that it cannot read.
local function find_foreign(names, arguments, leaves_records)
  local lanes = redis.pcall('HGET', CONFIG, 'lanes')
  local suffixes = { '' }
  for lane in string.gmatch(type(lanes) == 'string' and lanes or '', '[^,]+') do
    suffixes[#suffixes + 1] = ':' .. lane
  end
  for _, name in ipairs(names) do
    local first, last = 1, name[3] and #suffixes or 1
    local is_left = leaves_records and name[1] == TASK
    for at = 1, is_left and 0 or name[4] and (arguments and #arguments or 0) or 1 do
      for lane = first, last do
        local key = name[1] .. (name[4] and arguments[at] or '') .. suffixes[lane]
        local found = foreign(key, name[2])
        if found then
          return found
        end
      end
    end
  end
end

-- What a call that met a foreign value may have been about: what its arguments name, and the first
-- tasks, devices, workers and processes that it can have come to by itself.
local function suspects(arguments)
  local found = {}
  for at = 2, math.min(#arguments, 64) do
    found[#found + 1] = arguments[at]
    local mac = redis.pcall('HGET', TASK .. arguments[at], 'mac')
    if type(mac) == 'string' then
      found[#found + 1] = mac
    end
  end
  for _, key in ipairs({ MACS, DEADLINES, WORKERS, PROCESSES }) do
    for _, member in ipairs(redis.pcall('ZRANGE', key, 0, 15)) do
      found[#found + 1] = member
    end
  end
  return found
end

-- A verb's function. A value of a foreign type under one of its keys is told by its name; a verb
-- that is not on the way of every task (`looks_first`) looks for one before it writes.
local function guarded(names, looks_first, body)
  return function(_, arguments)
    local found = looks_first
      and find_foreign(names, #arguments <= 16 and arguments or nil, true)
    if found then
      return found
    end
    local went_well, reply = pcall(body, arguments)
    if went_well then
      return reply
    end
    local said = type(reply) == 'table' and reply.err or tostring(reply)
    if string.find(said, 'WRONGTYPE', 1, true) then
      return find_foreign(names, suspects(arguments)) or fail('FOREIGN_KEY', 'key: ' .. said)
    end
    -- Not thrown again: Redis would put the place before the code, and Valkey would not.
    return type(reply) == 'table' and reply
      or redis.error_reply((string.find(said, '^%u[%u_]+ ') and '' or 'ERR ') .. said)
  end
end
