-- What every script begins with: the check that it was made for this store's settings, the clock.
-- `scripts.py` puts before a verb's file, in this order: its shebang (from its `Flags` line), the
-- key names and settings (`C`) that it uses, this file, and the shared functions that it calls.
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

if DIGEST and call('HGET', CONFIG, 'digest') ~= DIGEST then
  error(fail('CONFIG_CHANGED', 'config: the store has other settings; join it anew'))
end

local now = tonumber(ARGV[1])
if now == 0 then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
elseif call('EXISTS', CLOCK) == 0 then
  error(fail('CLOCK_REFUSED', 'clock: only a store with the virtual-clock mark takes one'))
end
