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
