-- What is wrong with a device or a task, counted anew from records and lists. Nothing is written.
-- A flaw is {who, what, what is stored, what is right}.

-- What one step counts anew, at most: each bound is some milliseconds.
local FEW_TASKS = 250
local FEW_DEVICES = 1000
local FEW_SITES = 50

-- Count the tasks of a set that are in one of two states, by '<lane>|<mac>'; nil if there are many.
local function count_by_device(key, one, other, counts)
  if call('ZCARD', key) > FEW_TASKS then
    return nil
  end
  for _, id in ipairs(call('ZRANGE', key, 0, FEW_TASKS - 1)) do
    local f = redis.pcall('HMGET', TASK .. id, 'lane', 'mac', 'state')
    if f[1] and (f[3] == one or f[3] == other) then
      local turn_id = f[1] .. '|' .. (f[2] or '')
      counts[turn_id] = (counts[turn_id] or 0) + 1
    end
  end
  return counts
end

-- What a device's counts are compared with: leases and delayed tasks, read once a script.
local function read_counts()
  local leases = {}
  for name in string.gmatch(C.lanes, '[^,]+') do
    local key = INFLIGHT .. lane_of(name).suffix
    leases = leases and count_by_device(key, 'leased', 'running', leases)
  end
  return { leases = leases, delayed = count_by_device(DELAYED, 'delayed', 'delayed', {}) }
end

-- When a queued task came; 0 if its record cannot be read.
local function came_at(id)
  local f = redis.pcall('HMGET', TASK .. id, 'created_at')
  return num(f[1]) or 0
end

-- When a queue's oldest task came, if the stored time cannot be: a task that was deferred may stand
-- behind younger ones, so it need not be the oldest of all. Past 64 tasks any time may be right.
local function right_oldest(d, queued)
  if queued == 0 or queued > 64 then
    return queued > 0 and (d.oldest or came_at(call('LINDEX', d.queue, 0))) or nil
  end
  local least, before, sorted, is_one = nil, 0, true, false
  for _, id in ipairs(call('LRANGE', d.queue, 0, 63)) do
    local created = came_at(id)
    sorted, before = sorted and created >= before, created
    least, is_one = older(least, created), is_one or created == d.oldest
  end
  return not sorted and is_one and d.oldest or least
end

-- Should a device with these counts be in its schedule? One that has got a token, or whose backoff
-- is over, is let in by the next sweep or claim and not before.
local function should_go(d, queued)
  local L = d.lane
  if d.paused or queued == 0 or call('ZSCORE', BACKOFF .. L.suffix, d.mac)
    or call('ZSCORE', TURNS, d.turn_id)
    or d.max_running and d.whole.leased >= d.max_running then
    return false
  end
  return not d.rate or not (token_due(d) or call('ZSCORE', THROTTLED .. L.suffix, d.mac))
end

-- A device as it should be: its lanes with right counts, and the sums of them.
local function recount(mac, counts)
  local whole = { pending = 0, leased = 0, lanes = {} }
  for name in string.gmatch(C.lanes, '[^,]+') do
    local d = device(mac, lane_of(name), whole.stored)
    whole.stored = d.whole
    local queued = call('LLEN', d.queue)
    local here = { d = d, queued = queued,
      leased = counts.leases and (counts.leases[d.turn_id] or 0) or d.leased,
      pending = counts.delayed and queued + (counts.delayed[d.turn_id] or 0)
        or math.max(queued, d.pending) }
    here.oldest = right_oldest(d, queued)
    whole.lanes[#whole.lanes + 1] = here
    whole.pending, whole.leased = whole.pending + here.pending, whole.leased + here.leased
    whole.oldest = older(whole.oldest, here.oldest)
  end
  return whole
end

-- The flaws of where a device stands in a lane; its counts are taken for right.
local function audit_place(note, here)
  local d = here.d
  local suffix, own, fair = d.lane.suffix, d.lane.field, C.policy == 'fair'
  local score = call('ZSCORE', place_of(d).schedule, d.mac)
  local should = should_go(d, here.queued)
  local waits = tonumber(call('ZSCORE', WAITING .. suffix, d.mac))
  note(own .. 'in the schedule', score and 1 or 0, should and 1 or 0)
  note(own .. 'waits since', waits or 0, should and math.max(here.oldest or 0, d.served) or 0)
  note(own .. 'below its floor', call('ZSCORE', FLOOR .. suffix, d.mac) and 1 or 0,
    should and is_below_floor(d) and 1 or 0)
  note(own .. 'unschedulable_until',
    num(call('HGET', d.meta, own .. 'unschedulable_until')) or 0,
    tonumber(call('ZSCORE', BACKOFF .. suffix, d.mac)) or 0)
  if call('ZSCORE', TURNS, d.turn_id) then
    note(own .. 'turn with a token', call('EXISTS', active_key(d)), 1)
  end
  if fair then
    local remembered = call('ZSCORE', d.order.finish, d.mac)
    note(own .. 'tag beside its leases', d.held and 1 or 0,
      not should and here.leased > 0 and 1 or 0)
    note(own .. 'tag remembered', remembered and 1 or 0,
      remembered and not should and here.leased == 0 and 1 or 0)
    if score and should then
      local tag = 0 - tonumber(score)
      note(own .. 'tag', string.format('%.17g', tag),
        string.format('%.17g', math.max(0, math.floor(tag))))
    end
  elseif score and should and tonumber(score) <= 0 then
    note(own .. 'score is of', math.floor(-tonumber(score) / 1024), here.oldest)
  elseif score and should then
    local right = d.turn > 0 and SATURATED - d.turn or tonumber(score)
    note(own .. 'score', string.format('%.0f', tonumber(score)), string.format('%.0f', right))
  end
end

-- What a device without tasks still says of them: the first field that is no setting of it.
local function left_over(d)
  local kept = ' weight paused min_running max_running rate site configured tokens tokens_at '
  for _, field in ipairs(call('HKEYS', d.meta)) do
    if not string.find(kept, ' ' .. field .. ' ', 1, true)
      and not string.find(field, 'unschedulable_until$') then
      return field
    end
  end
  return ''
end

-- The flaws of a device, and how it should be. It was seen in the schedule of `site`, or nowhere.
local function audit_device(mac, counts, site)
  local right, flaws = recount(mac, counts), {}
  local stored, meta = right.stored, META .. mac
  local function note(what, found, wanted)
    if found ~= wanted then
      flaws[#flaws + 1] = { mac, what, tostring(found), tostring(wanted) }
    end
  end
  note('pending_count', stored.total, right.pending)
  note('leased', stored.leased, right.leased)
  note('oldest_created_at', stored.oldest or 0, right.oldest or 0)
  note('in mac:pending', call('ZSCORE', MACS, mac) and 1 or 0, right.pending > 0 and 1 or 0)
  note('overloaded', call('SISMEMBER', OVERLOADED, mac),
    right.pending > C.max_per_mac_pending and 1 or 0)
  stored.leased = right.leased
  for _, here in ipairs(right.lanes) do
    local d, own = here.d, here.d.lane.field
    if own ~= '' then
      note(own .. 'pending_count', d.pending, here.pending)
      note(own .. 'leased', d.leased, here.leased)
      note(own .. 'oldest_created_at', d.oldest or 0, here.oldest or 0)
    end
    note(own .. 'counts that are none', d.is_recounted and 1 or 0, 0)
    d.leased = here.leased
    audit_place(note, here)
    for _, other in ipairs({ 'default', site ~= '' and site or nil }) do
      if other ~= d.site and C.policy == 'fair' then
        note(own .. 'in the schedule of ' .. other,
          call('ZSCORE', order_of_devices(d.lane, other).schedule, mac) and 1 or 0, 0)
      end
    end
  end
  if right.pending == 0 and right.leased == 0 and call('EXISTS', meta) == 1 then
    note('left over', left_over(right.lanes[1].d), '')
  end
  return flaws, right
end

-- Where a task is, beside its record. A list is looked through: `spent` counts its length.
local function audit_task(id, queue, spent)
  local flaws = {}
  local function note(what, found, wanted)
    if found ~= wanted then
      flaws[#flaws + 1] = { id, what, tostring(found), tostring(wanted) }
    end
  end
  local kind = call('TYPE', TASK .. id).ok
  local f = kind == 'hash' and call('HMGET', TASK .. id, 'state', 'mac', 'lane', 'created_at',
    'expires_at', 'due_at') or {}
  local state, waits = f[1] or 'unknown', f[1] == 'pending' or f[1] == 'delayed'
  local leased = state == 'leased' or state == 'running'
  local bad = kind ~= 'none' and (kind ~= 'hash' or not is_state(f[1])
    or (waits or leased) and is_flawed(f, f[2], f[3], f[4], f[5]))
  note('record', bad and 'unreadable' or 1, 1)
  note(state .. ', in deadlines', tonumber(call('ZSCORE', DEADLINES, id)) or 0,
    waits and num(f[5]) or 0)
  note(state .. ', in delayed', call('ZSCORE', DELAYED, id) and 1 or 0,
    state == 'delayed' and 1 or 0)
  for name in string.gmatch(C.lanes, '[^,]+') do
    note(state .. ', leased in ' .. name,
      call('ZSCORE', INFLIGHT .. lane_of(name).suffix, id) and 1 or 0,
      leased and f[3] == name and 1 or 0)
  end
  local own = f[2] and f[3] and QUEUE .. f[2] .. lane_of(f[3]).suffix
  if queue and queue ~= own and queue ~= DEAD_LETTER then
    note(state .. ', in a queue of another', #call('LPOS', queue, id, 'COUNT', 0), 0)
    spent = spent + call('LLEN', queue)
  end
  if own and (state == 'pending' or queue == own or leased or state == 'delayed') then
    local places = #call('LPOS', own, id, 'COUNT', 0)
    note(state .. ', in its queue', places, state == 'pending' and 1 or 0)
    spent = spent + call('LLEN', own)
  end
  if state == 'dead' or queue == DEAD_LETTER then
    note(state .. ', in dead_letter', #call('LPOS', DEAD_LETTER, id, 'COUNT', 0),
      state == 'dead' and 1 or 0)
    spent = spent + call('LLEN', DEAD_LETTER)
  end
  if f[1] then
    local ended = not TRANSITIONS[state]
    note(state .. ', ends by itself', call('PTTL', TASK .. id) > 0 and 1 or 0, ended and 1 or 0)
  end
  return flaws, spent, { state = state, mac = f[2], lane = f[3], created = num(f[4]),
    expires = num(f[5]), due = num(f[6]), queue = own,
    waits = waits, leased = leased, is_bad = bad, is_gone = kind == 'none' }
end
