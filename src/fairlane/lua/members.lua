-- List a page of the members of a set or list.
--
-- Returns  {how many there are, members…}; of an unordered set any `limit` of them
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local place, lane, owner, offset, limit =
  ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local suffix = lane == '' and '' or lane_of(lane).suffix
local key = ({
  macs = MACS, deadlines = DEADLINES, delayed = DELAYED, turns = TURNS, dead_letter = DEAD_LETTER,
  overloaded = OVERLOADED, inflight = INFLIGHT .. suffix, waiting = WAITING .. suffix,
  backoff = BACKOFF .. suffix, throttled = THROTTLED .. suffix, floor = FLOOR .. suffix,
  sites = SITES .. suffix, queue = QUEUE .. owner .. suffix,
  schedule = SCHEDULE .. suffix .. (owner == '' and '' or '@' .. owner),
})[place]

local kind = call('TYPE', key).ok
if kind == 'zset' then
  return { call('ZCARD', key), call('ZRANGE', key, offset, offset + limit - 1) }
elseif kind == 'list' then
  return { call('LLEN', key), call('LRANGE', key, offset, offset + limit - 1) }
elseif kind == 'set' then
  return { call('SCARD', key), offset == 0 and call('SRANDMEMBER', key, limit) or {} }
end
return { 0, {} }
