-- Who is next: the schedule's members and their order, under both policies. A claim never meets a
-- device that cannot go, because whatever stops a device takes it out in the same script.

-- `fair`: a score is minus the start tag. 16 to the microsecond of cost, so that the order of
-- arrival fits below any real difference; whole numbers up to 2^53.
local COST = 16 * 10000
-- `aging`: a young device ranks by its oldest task, minus (oldest × 1024 + arrival), below 0. One
-- past W_max ties with all such, so it ranks by its last turn: 2^52 - turn; one that was never
-- served goes before them, oldest first.
local SATURATED = 2 ^ 52

local function aging_score(oldest, turn, arrival)
  local young = -(oldest * 1024 + arrival % 1024)
  if now - oldest < C.aging_max_wait_ms then
    return young
  elseif turn == 0 then
    return 2 * SATURATED + young
  end
  return SATURATED - turn
end

local function virtual_time(L)
  local f = call('HMGET', L.virtual, 'v', 'joined', 'pending')
  return tonumber(f[1]) or 0, tonumber(f[2]) or 0, tonumber(f[3]) or 0
end

-- The first tag from `tag` on that no device of the schedule has, or the MAC would decide. Tags
-- `tag` to `tag + low - 1` are known to be taken; a run of them ends where a count falls short.
local function free_tag(L, tag)
  local low, high = 0, 1
  for _ = 1, 53 do
    if call('ZCOUNT', L.schedule, -(tag + high - 1), -tag) < high then
      break
    end
    low, high = high, high * 2
  end
  for _ = 1, 53 do
    if high - low <= 1 then
      break
    end
    local middle = math.floor((low + high) / 2)
    if call('ZCOUNT', L.schedule, -(tag + middle - 1), -tag) < middle then
      high = middle
    else
      low = middle
    end
  end
  return tag + low
end

-- The tag of a device that becomes backlogged: its remembered one if that is ahead of v, else v,
-- after the newcomers that came before it. An idle lane first forgets: v is where the furthest
-- device ended, so nobody pays for a past rush and nobody saves up.
local function start_tag(d)
  local L = d.lane
  local v, joined, pending = virtual_time(L)
  if pending == d.pending and call('ZCARD', L.schedule) == 0 and call('ZCARD', L.inflight) == 0 then
    local top = call('ZREVRANGE', L.finish, 0, 0, 'WITHSCORES')
    call('UNLINK', L.finish)
    v = math.max(v, tonumber(top[2]) or 0)
  end
  local tag = tonumber(call('ZSCORE', L.finish, d.mac)) or 0
  if tag > v then
    call('ZREM', L.finish, d.mac)
  else
    tag = math.max(v, joined + 1)
    call('HSET', L.virtual, 'v', v, 'joined', tag)
  end
  return free_tag(L, tag)
end

-- Write a device's place: under `fair` its tag, under `aging` the score of its oldest task.
local function rank(d, tag)
  local L, oldest = d.lane, d.oldest or now
  call('ZADD', L.schedule, C.policy == 'fair' and -tag
    or aging_score(oldest, d.turn, call('HINCRBY', L.virtual, 'arrivals', 1)), d.mac)
  call('ZADD', L.waiting, math.max(oldest, d.served), d.mac)
end

local function remember(d, tag)
  if C.policy == 'fair' then
    call('ZADD', d.lane.finish, tag, d.mac)
  end
end

local function leave(d)
  local score = call('ZSCORE', d.lane.schedule, d.mac)
  if score then
    call('ZREM', d.lane.schedule, d.mac)
    call('ZREM', d.lane.waiting, d.mac)
    remember(d, -tonumber(score))
  end
end

-- The one rule of membership: a device is in the schedule if and only if it has a queue and is
-- neither paused, nor in backoff, nor in a two-step turn. True when it came in.
local function seat(d)
  local L = d.lane
  local can_go = not d.paused and call('LLEN', d.queue) > 0
    and not call('ZSCORE', L.backoff, d.mac) and not call('ZSCORE', TURNS, d.turn_id)
  if not can_go then
    leave(d)
    return false
  end
  local score = call('ZSCORE', L.schedule, d.mac)
  if not score then
    rank(d, C.policy == 'fair' and start_tag(d))
  elseif d.oldest ~= d.oldest_before then
    rank(d, -tonumber(score))
  end
  return not score
end

-- What one task moves its device's tag by, at its weight now.
local function price(d)
  return math.max(1, math.floor(COST / d.weight))
end

-- Charge a device that is out of the schedule, in a two-step turn.
local function charge(d, amount)
  if C.policy == 'fair' and amount > 0 then
    local tag = tonumber(call('ZSCORE', d.lane.finish, d.mac)) or 0
    call('ZADD', d.lane.finish, math.max(tag, (virtual_time(d.lane))) + amount, d.mac)
  end
end

-- Give back what a task was charged, wherever the device's tag stands now. Never past v: a weight
-- that changed in between, or a v that moved on, would make a credit of it.
local function refund(d, paid)
  if C.policy ~= 'fair' or not paid then
    return
  end
  local L, v = d.lane, (virtual_time(d.lane))
  local score = call('ZSCORE', L.schedule, d.mac)
  local tag = score and -tonumber(score) or tonumber(call('ZSCORE', L.finish, d.mac))
  local back = tag and math.max(v, tag - tonumber(paid))
  if back and back < tag then
    if score then
      call('ZADD', L.schedule, -free_tag(L, back), d.mac)
    else
      call('ZADD', L.finish, back, d.mac)
    end
  end
end

-- Does any other device of the lane wait T_starve or longer? O(1): only the two first can matter.
local function starved(L, mac)
  local limit = now - C.starvation_after_ms
  if C.policy == 'aging' then
    local top = call('ZREVRANGE', L.schedule, 0, 1, 'WITHSCORES')
    for i = 1, #top, 2 do
      local score = tonumber(top[i + 1])
      if top[i] ~= mac and (score > 0 or math.floor(-score / 1024) <= limit) then
        return true
      end
    end
  else
    local first = call('ZRANGE', L.waiting, 0, 1, 'WITHSCORES')
    for i = 1, #first, 2 do
      if first[i] ~= mac and tonumber(first[i + 1]) <= limit then
        return true
      end
    end
  end
  return false
end

-- Under `aging`, let up to 64 devices that have passed W_max join those that tie.
local function promote(L)
  local due = call('ZREVRANGEBYSCORE', L.schedule, '(0',
    -((now - C.aging_max_wait_ms) * 1024 + 1023), 'WITHSCORES', 'LIMIT', 0, 64)
  for i = 1, #due, 2 do
    local turn = tonumber(call('HGET', META .. due[i], L.turn)) or 0
    local young = tonumber(due[i + 1])
    call('ZADD', L.schedule, turn == 0 and 2 * SATURATED + young or SATURATED - turn, due[i])
  end
end

-- The device whose turn it is, or nil; true beside it when the guard let it go out of order: one
-- turn in four belongs to the device longest in `waiting` past T_starve, if its tag is near v.
local function next_device(L, exclude_mac)
  if C.policy == 'aging' then
    promote(L)
  end
  local top = call('ZREVRANGE', L.schedule, 0, 1, 'WITHSCORES')
  if not top[1] then
    return nil
  end
  local at = top[1] == exclude_mac and top[3] and 3 or 1
  local mac, tag = top[at], -tonumber(top[at + 1])
  if C.policy == 'fair' then
    local v = virtual_time(L)
    local turns = tonumber(call('HGET', L.virtual, 'turns')) or 0
    if turns % 4 == 3 then
      local first = call('ZRANGE', L.waiting, 0, 0, 'WITHSCORES')
      if first[1] ~= mac and first[1] ~= exclude_mac
        and tonumber(first[2]) <= now - C.starvation_after_ms then
        local d = device(first[1], L)
        d.tag = -tonumber(call('ZSCORE', L.schedule, d.mac))
        if d.tag - v <= COST / d.weight then
          return d, true
        end
      end
    end
    if tag > v then
      call('HSET', L.virtual, 'v', tag)
    end
  end
  local d = device(mac, L)
  d.tag = tag
  return d, false
end

-- How many tasks a turn may take (section 4.2), never more than `room`. Under `fair` a turn leaves
-- a credit for every device that waits.
local function batch_size(d, room)
  local size = starved(d.lane, d.mac) and C.min_batch_size or C.batch_size
  if C.policy == 'fair' then
    size = math.min(size, math.max(1, math.floor(room / call('ZCARD', d.lane.schedule))))
  end
  return math.min(size, room)
end

-- End a one-step turn: charge it, and leave the device in the schedule or, its queue being empty,
-- remember its tag. Nothing else can have changed within the script.
local function settle_turn(d, charged)
  local L, queued = d.lane, call('LLEN', d.queue) > 0
  local tag = d.tag + charged
  if queued then
    rank(d, C.policy == 'fair' and charged > 0 and free_tag(L, tag) or tag)
  else
    call('ZREM', L.schedule, d.mac)
    call('ZREM', L.waiting, d.mac)
    remember(d, tag)
  end
end

-- Forget remembered tags at or before v, 64 a script: they mean no more than v does. Past 100,000
-- remembered ones v rises to the lowest.
local function reap(L)
  if C.policy ~= 'fair' then
    return
  end
  local past = call('ZRANGE', L.finish, '-inf', (virtual_time(L)), 'BYSCORE', 'LIMIT', 0, 64)
  if #past > 0 then
    call('ZREM', L.finish, unpack(past))
  elseif call('ZCARD', L.finish) > 100000 then
    call('HSET', L.virtual, 'v', call('ZRANGE', L.finish, 0, 0, 'WITHSCORES')[2])
  end
end

-- A new weight acts on the backlog at once: what the device is ahead of v shrinks or grows.
local function reweigh(d, before)
  local L, v = d.lane, (virtual_time(d.lane))
  for key, sign in pairs({ [L.schedule] = -1, [L.finish] = 1 }) do
    local score = C.policy == 'fair' and before ~= d.weight and tonumber(call('ZSCORE', key, d.mac))
    if score and score * sign > v then
      local tag = free_tag(L, v + math.floor((score * sign - v) * before / d.weight))
      call('ZADD', key, sign * tag, d.mac)
    end
  end
end
